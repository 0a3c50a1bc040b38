package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
)

// observe writes one log line and one set of metrics for each request. A request whose connection
// was aborted has the status "aborted".
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := recordOf(r.Context())
		if rec.poll == nil {
			s.metrics.inFlight.Inc()
		}
		answer := &response{ResponseWriter: w}
		body := &countedBody{ReadCloser: r.Body}
		if r.Body != nil {
			r.Body = body
		}
		returned := false
		defer func() { // deferred, because a handler may panic with http.ErrAbortHandler
			if rec.isParked {
				return
			}
			if rec.poll != nil {
				rec.poll.listener.Close() // the poll is fetched, which closes the listener as well, unless the request was refused before
			}
			s.metrics.inFlight.Dec()
			s.report(r, responseFacts{
				status:   answer.statusText(returned),
				code:     answer.status,
				duration: s.opts.Clock().Sub(rec.start),
				received: body.n,
				sent:     answer.n,
			})
		}()
		next.ServeHTTP(answer, r)
		returned = true
	})
}

// responseFacts describes a response, for the log and the metrics.
type responseFacts struct {
	status         string
	code           int
	duration       time.Duration
	received, sent int64 // sizes of the request body and the response body in bytes
}

// unmatched is the label of requests that match no route. Labels must not contain arbitrary paths.
const unmatched = "unmatched"

func (s *Server) report(r *http.Request, o responseFacts) {
	rec := recordOf(r.Context())
	route := routeOf(r)
	path := ""
	if route == "" || rec.problem == noRoute || rec.problem == wrongMethod {
		route, path = unmatched, domain.Shorten(r.URL.Path)
	}
	s.reportRecord(r.Context(), rec, domain.Shorten(r.Method), route, path, o)
}

// routeOf returns the pattern of the route that serves r, or "" if none exists.
func routeOf(r *http.Request) string { return chi.RouteContext(r.Context()).RoutePattern() }

// reportPoll reports a parked request that ends without a response.
func (s *Server) reportPoll(p *poll, err error) {
	s.metrics.inFlight.Dec()
	rec := &requestRecord{id: p.id, err: err, span: p.span, principal: p.principal}
	rec.note(slog.String("actor", p.actor))
	ctx := s.draining
	if p.span != nil {
		ctx = tracing.WithSpan(ctx, p.span)
	}
	s.reportRecord(ctx, rec, http.MethodGet, p.route, "", responseFacts{status: aborted, duration: s.opts.Clock().Sub(p.start)})
}

// reportRecord writes the log line and the metrics of one request. path is "" if the route
// determines the path.
func (s *Server) reportRecord(ctx context.Context, rec *requestRecord, method, route, path string, o responseFacts) {
	s.metrics.observeRequest(route, rec.problem, o, rec.exemplar())
	rec.endSpan(method, route, o)

	now := s.opts.Clock()
	s.logUnlogged(s.refusals.endWindows(now, false))
	if isRefusal := 400 <= o.code && o.code < 500; isRefusal && !s.refusals.admitLine(refusalKind{route, o.code}, now) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", rec.id),
		slog.String("method", method),
		slog.String("route", route),
		slog.String("status", o.status),
		slog.Float64("duration_ms", milliseconds(o.duration)),
		slog.Int64("received_bytes", o.received),
		slog.Int64("sent_bytes", o.sent),
	}
	if path != "" {
		attrs = append(attrs, slog.String("path", path))
	}
	if rec.principal != "" {
		attrs = append(attrs, slog.String("principal", rec.principal))
	}
	attrs = append(attrs, rec.attrs...)
	if rec.problem != "" {
		attrs = append(attrs, slog.String("problem", string(rec.problem)))
	}
	if rec.err != nil {
		attrs = append(attrs, slog.String("error", rec.err.Error()))
	}
	s.opts.Logger.LogAttrs(ctx, logLevel(route, o), "request", attrs...)
}

// logUnlogged logs how many refused requests of each kind were not logged.
func (s *Server) logUnlogged(kinds []unloggedRefusals) {
	for _, k := range kinds {
		s.opts.Logger.Info("refused requests were left out of the log", "route", k.route, "status", strconv.Itoa(k.status), "left_out", k.n)
	}
}

// milliseconds returns d as a number, which has the same text in every log format.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// polledRoutes are routes that machines request continuously.
var polledRoutes = []string{"/healthz", "/readyz", "/metrics", "/api/monitor/live", "/api/monitor/ready"}

func logLevel(route string, o responseFacts) slog.Level {
	switch {
	case o.code == http.StatusServiceUnavailable, o.status == aborted:
		return slog.LevelWarn
	case o.code >= 500:
		return slog.LevelError
	case slices.Contains(polledRoutes, route):
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// aborted is the status of an incomplete response in the log.
const aborted = "aborted"

// A response is a ResponseWriter that records the status and the size of the body.
type response struct {
	http.ResponseWriter
	status int   // HTTP status; 0 until the header is written
	n      int64 // number of bytes of the body
}

func (w *response) statusText(returned bool) string {
	if !returned {
		return aborted
	}
	if w.status == 0 {
		w.status = http.StatusOK // net/http does the same
	}
	return strconv.Itoa(w.status)
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.n += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A countedBody counts the bytes of a request's body.
type countedBody struct {
	io.ReadCloser
	n int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	if err != nil && err != io.EOF {
		err = &bodyError{err}
	}
	return n, err
}
