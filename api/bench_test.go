package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
)

// BenchmarkPeekBody repeatedly peeks one open bundle over HTTP and reads its body.
func BenchmarkPeekBody(b *testing.B) {
	for _, bm := range []struct {
		events  int
		payload int // size of each event's payload in bytes
		coding  string
	}{{1, 0, "identity"}, {2_000, 0, "identity"}, {51_200, 0, "identity"}, {2_000, 10_000, "identity"}, {1, 0, "gzip"}, {51_200, 0, "gzip"}} {
		b.Run(strconv.Itoa(bm.events)+" events with "+strconv.Itoa(bm.payload)+" bytes "+bm.coding, func(b *testing.B) {
			store := memory.New(memory.Options{})
			server := httptest.NewServer(api.New(api.Options{Hub: hub.New(store, store, store, hub.Options{})}).Handler())
			defer server.Close()
			fill(b, server.URL, bm.events, bm.payload)
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequestWithContext(b.Context(), "GET", server.URL+"/v1/peek", nil)
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("X-Actor-Id", actor)
				req.Header.Set("Accept-Encoding", bm.coding)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Fatal(resp.Status, err)
				}
				b.SetBytes(n)
			}
		})
	}
}

// fill posts n events, each with a payload of the given size in bytes.
func fill(b *testing.B, url string, n, payload int) {
	b.Helper()
	for at := 0; at < n; at += 2_000 {
		var body strings.Builder
		for i := at; i < min(n, at+2_000); i++ {
			weight := "1"
			if payload > 0 {
				weight = "20"
			}
			body.WriteString(`,{"id":"` + id(i+1) + `","recipient":"` + actor + `","origin":"TimeSeries","contentType":"c","documentType":"D","supportsBundling":true,"weight":` + weight)
			if payload > 0 {
				body.WriteString(`,"payload":"` + strings.Repeat("x", payload-2) + `"`)
			}
			body.WriteByte('}')
		}
		resp, err := http.Post(url+"/v1/data-available", "application/json", strings.NewReader("["+body.String()[1:]+"]"))
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted {
			b.Fatal(resp.Status)
		}
	}
}
