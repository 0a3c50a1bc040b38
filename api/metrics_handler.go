package api

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// metricsAge is the time for which a rendered page of metrics is reused.
const metricsAge = time.Second

// A metricsHandler serves the metrics of a gatherer. It renders each format at most once in
// metricsAge, and all requests share the rendered page. So clients that do not read take no
// additional memory, however many requests they send. The handler ignores the query.
type metricsHandler struct {
	render http.Handler
	clock  func() time.Time

	mu    sync.Mutex
	pages map[metricsFormat]*metricsPage
}

// A metricsFormat is a format that clients accept. Only a few dozen formats exist.
type metricsFormat struct {
	format expfmt.Format
	isGzip bool
}

// A metricsPage is a rendered response, which is never changed.
type metricsPage struct {
	at     time.Time
	status int
	header http.Header
	body   bytes.Buffer
}

func newMetricsHandler(g prometheus.Gatherer, clock func() time.Time) *metricsHandler {
	return &metricsHandler{
		render: promhttp.HandlerFor(g, promhttp.HandlerOpts{EnableOpenMetrics: true}),
		clock:  clock,
		pages:  make(map[metricsFormat]*metricsPage),
	}
}

// ServeHTTP implements http.Handler.
func (h *metricsHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page := h.page(r)
	maps.Copy(w.Header(), page.header)
	w.Header().Set("Content-Length", strconv.Itoa(page.body.Len()))
	w.WriteHeader(page.status)
	_, _ = w.Write(page.body.Bytes()) // Write fails if the client has disconnected
}

// page returns the response to r. It renders the page unless a recent page exists.
func (h *metricsHandler) page(r *http.Request) *metricsPage {
	wants := metricsFormat{
		format: expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...),
		isGzip: acceptsGzip(r.Header),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock()
	if page := h.pages[wants]; page != nil && now.Sub(page.at) < metricsAge {
		return page
	}
	maps.DeleteFunc(h.pages, func(_ metricsFormat, p *metricsPage) bool { return now.Sub(p.at) >= metricsAge })
	page := &metricsPage{at: now, status: http.StatusOK, header: make(http.Header)}
	h.render.ServeHTTP(page, renderRequest(r, wants.isGzip))
	h.pages[wants] = page
	return page
}

// renderRequest returns the request for the renderer, which contains only the format that r
// accepts.
func renderRequest(r *http.Request, isGzip bool) *http.Request {
	render := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: r.URL.Path}, Header: make(http.Header)}
	render.Header["Accept"] = r.Header["Accept"]
	render.Header.Set("Accept-Encoding", "identity")
	if isGzip {
		render.Header.Set("Accept-Encoding", "gzip")
	}
	return render
}

// Header implements http.ResponseWriter.
func (p *metricsPage) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *metricsPage) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *metricsPage) Write(b []byte) (int, error) { return p.body.Write(b) }
