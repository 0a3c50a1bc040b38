package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
)

// FuzzDownloads requests an open bundle with arbitrary headers and an arbitrary query. The response
// must not be a server error, and a response with the whole body must be complete.
func FuzzDownloads(f *testing.F) {
	store := memory.New(memory.Options{})
	handler := api.New(api.Options{Hub: hub.New(store, store, store, hub.Options{})}).Handler()
	do := func(method, target, body string, header http.Header) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, target, strings.NewReader(body))
		if header != nil {
			req.Header = header
		}
		req.Header.Set("X-Actor-Id", actor)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		return w
	}
	do("POST", "/v1/data-available", array(newEvent(1, "payload", strings.Repeat("x", 300)), newEvent(2), newEvent(3, "payload", 1)), nil)
	first := do("GET", "/api/peek", "", nil)
	whole, tag := first.Body.String(), first.Header().Get("ETag")
	for _, r := range []string{"bytes=0-", "bytes=-0", "bytes=5-1,9-", "bytes=0-0,-1,100-200", "items=0-5", "bytes=,-,", "bytes=18446744073709551616-"} {
		f.Add(r, tag, "gzip;q=0.5", "bundleId="+first.Header().Get("MessageId"))
	}
	f.Add("", `W/"a", *`, "*;q=x, identity;q=0", "%zz&responseformat=1&BUNDLEID=%7B0x1,0x2%7D&responseversion=-1e9&&=")
	f.Fuzz(func(t *testing.T, ranges, condition, coding, query string) {
		target := "/Api/Peek"
		if r, err := http.NewRequestWithContext(t.Context(), "GET", "/Api/Peek?"+query, http.NoBody); err == nil && !strings.ContainsAny(query, " \r\n") {
			target = r.URL.String()
		}
		for _, name := range []string{"If-Range", "If-Match", "If-None-Match", "X-None"} {
			got := do("GET", target, "", http.Header{"Range": {ranges}, name: {condition}, "Accept-Encoding": {coding}})
			switch got.Code {
			case http.StatusOK:
				if got.Header().Get("Content-Encoding") == "" && got.Body.String() != whole {
					t.Errorf("200 with %d of %d bytes", got.Body.Len(), len(whole))
				}
			case http.StatusPartialContent, http.StatusNotModified, http.StatusBadRequest, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
			default:
				t.Errorf("status %d: %s", got.Code, got.Body)
			}
		}
	})
}
