package api_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

func TestMetrics_AreRenderedOnceASecondInEachFormat(t *testing.T) {
	now, gathered := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC), 0
	f := newFixture(t, func(o *api.Options, _ *hub.Options) {
		registry := prometheus.NewRegistry()
		o.Clock, o.Registerer = func() time.Time { return now }, registry
		o.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
			gathered++
			return registry.Gather()
		})
	})
	get := func(method, accept, encoding string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, "http://hub/metrics?name[]=a", nil)
		req.Header.Set("Accept", accept)
		req.Header.Set("Accept-Encoding", encoding)
		rec := httptest.NewRecorder()
		f.server.Handler().ServeHTTP(rec, req)
		require.Equal(t, http.StatusOK, rec.Code)
		return rec
	}
	first := get(http.MethodGet, "", "")
	for range 5 {
		again := get(http.MethodGet, "text/plain, */*;q=0.1", "identity")
		require.Equal(t, first.Body.String(), again.Body.String())
		require.Equal(t, first.Header().Get("Content-Type"), again.Header().Get("Content-Type"))
	}
	require.Equal(t, 1, gathered)
	require.Equal(t, "gzip", get(http.MethodGet, "", "gzip").Header().Get("Content-Encoding"))
	require.Contains(t, get(http.MethodGet, "application/openmetrics-text", "").Header().Get("Content-Type"), "application/openmetrics-text")
	get(http.MethodHead, "", "gzip")
	require.Equal(t, 3, gathered)
	now = now.Add(time.Second)
	require.NotEqual(t, first.Body.String(), get(http.MethodGet, "", "").Body.String(), "it has counted the requests")
	require.Equal(t, 4, gathered)
}

func TestMetrics_TakeLittleForClientsThatDoNotRead(t *testing.T) {
	const clients = 64
	synctest.Test(t, func(t *testing.T) {
		b := serveBubble(t, newFixture(t, func(o *api.Options, _ *hub.Options) {
			registry := prometheus.NewRegistry()
			many := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "many"}, []string{"n"})
			registry.MustRegister(many)
			for i := range 2000 {
				many.WithLabelValues(fmt.Sprint(i * i * i)).Set(float64(i))
			}
			o.Gatherer = registry
		}))
		request := func(encoding string) string {
			return "GET /metrics HTTP/1.1\r\nHost: hub\r\nAccept-Encoding: " + encoding + "\r\n\r\n"
		}
		for _, encoding := range []string{"gzip", "identity"} {
			stalled := func() {
				conn := b.dial()
				go func() { _, _ = fmt.Fprint(conn, strings.Repeat(request(encoding), 10)) }()
				_, err := http.ReadResponse(bufio.NewReader(conn), nil) // reads the header and at most one buffer of the body
				require.NoError(t, err)
			}
			stalled()
			synctest.Wait()
			before := heapInUse()
			for range clients {
				stalled()
			}
			synctest.Wait()
			require.Less(t, (heapInUse()-before)/clients, int64(48<<10), "bytes for each client: net/http takes most of them")
		}
	})
}

// heapInUse returns the bytes of heap objects that are in use.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
