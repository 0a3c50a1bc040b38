package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
)

func TestThin(t *testing.T) {
	m := memory.New(memory.Options{})
	s := api.New(api.Options{Hub: hub.New(m, m, m, hub.Options{})})
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	do := func(method, path, body string) {
		req, _ := http.NewRequest(method, srv.URL+path, strings.NewReader(body))
		req.Header.Set("X-Actor-Id", "a")
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		t.Log(resp.Status, resp.Header, string(b))
	}
	ev := `{"id":"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41","recipient":"a","origin":"TimeSeries","contentType":"c","documentType":"D","supportsBundling":true,"weight":3,"payload":{"a": [1, 2]}}`
	do("POST", "/v1/data-available", "["+ev+"]")
	do("POST", "/v1/data-available", "["+ev+"] x")
	do("POST", "/v1/data-available", "["+ev+`,{"wei~/":3,"weight":1.5}, 3]`)
	do("GET", "/v1/peek?bundleId=0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c42", "")
	do("GET", "/v1/peek/nope", "")
	do("GET", "/v1/peek/timeseries?format=xml", "")
	do("DELETE", "/v1/dequeue/0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c42", "")
	do("DELETE", "/v1/dequeue/0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c42", "")
	do("DELETE", "/v1/peek", "")
	do("HEAD", "/readyz", "")
	do("GET", "/metrics", "")
}
