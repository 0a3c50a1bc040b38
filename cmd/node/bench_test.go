package node_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// fillCabinet sends n events of 1 KB over HTTP. All events belong to the same
// cabinet.
func fillCabinet(b *testing.B, url, actor string, n int) {
	b.Helper()
	fillOrigin(b, url, actor, "TimeSeries", n)
}

func fillOrigin(b *testing.B, url, actor, origin string, n int) {
	b.Helper()
	for from := 0; from < n; from += 10_000 {
		var body strings.Builder
		for i := range min(10_000, n-from) {
			fmt.Fprintf(&body, `,{"id":"%08x-0000-4000-8000-%012x","recipient":"%s","origin":"%s","contentType":"RSM-012",`+
				`"documentType":"E66","supportsBundling":true,"weight":1}`, b.N, from+i+1, actor, origin)
		}
		status, answer := call(b, http.MethodPost, url+"/v1/data-available", "", "["+body.String()[1:]+"]")
		require.Equal(b, http.StatusAccepted, status, answer)
	}
}

// BenchmarkPeekOverHTTP fetches a bundle of 51,200 events from a complete node
// on the durable engine: first by opening the bundle, then while it is open.
func BenchmarkPeekOverHTTP(b *testing.B) {
	for _, what := range []string{"new", "repeated"} {
		b.Run(what, func(b *testing.B) {
			n, _ := start(b, settings(b.TempDir()), node.Options{})
			b.ReportAllocs()
			b.StopTimer()
			size := 0
			for i := range b.N {
				actor := fmt.Sprintf("actor-%d", i)
				fillCabinet(b, n.URL(), actor, 51_200)
				peek := func() {
					status, body := call(b, http.MethodGet, n.URL()+"/v1/peek", actor, "")
					require.Equal(b, http.StatusOK, status)
					require.Equal(b, 51_200, strings.Count(body, `"sequence":`))
					size = len(body)
				}
				if what == "repeated" {
					peek()
				}
				runtime.GC()
				b.StartTimer()
				peek()
				b.StopTimer()
			}
			b.ReportMetric(float64(size)/1e6, "MB/bundle")
		})
	}
}
