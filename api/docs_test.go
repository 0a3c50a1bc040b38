package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
)

// get returns a listener's response to a GET request.
func get(t *testing.T, set api.RouteSet, path string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	api.New(api.Options{}).HandlerOf(set, nil).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	return answer
}

func TestDocs_OfAListenerAreForItsClients(t *testing.T) {
	for _, tc := range []struct {
		path                   string
		all, operators, public int
	}{
		{"/docs", 200, 200, 200},
		{"/docs/", 200, 200, 200},
		{"/docs/style.css", 200, 200, 200},
		{"/docs/actors", 200, 200, 200},
		{"/docs/install", 200, 200, 404},
		{"/docs/none", 404, 404, 404},
		{"/docs/actors/", 404, 404, 404},
		{"/docsx", 404, 404, 404},
	} {
		require.Equal(t, tc.all, get(t, api.AllRoutes, tc.path).Code, tc.path)
		require.Equal(t, tc.operators, get(t, api.OperatorRoutes, tc.path).Code, tc.path)
		require.Equal(t, tc.public, get(t, api.PublicRoutes, tc.path).Code, tc.path)
	}
	require.Contains(t, get(t, api.OperatorRoutes, "/docs/").Body.String(), `<a href="install">`)
	require.NotContains(t, get(t, api.PublicRoutes, "/docs/").Body.String(), "install")
	require.Contains(t, get(t, api.OperatorRoutes, "/docs").Body.String(), `<a href="docs/install">`)
}

func TestDocs_MatchTheDocumentOfTheAPI(t *testing.T) {
	f := serve(t)
	require.Contains(t, f.do("GET", "/docs", "").wants(200).body, `<a href="docs/install">`)
	require.Contains(t, f.do("GET", "/docs/actors", "", "X-Actor-Id", "").wants(200).body, `<h1 id="fetching-data-as-an-actor">`)
	require.Contains(t, f.do("GET", "/docs/style.css", "").wants(200).body, "prefers-color-scheme: dark")
	page := f.do("HEAD", "/docs/actors", "").wants(200)
	require.Empty(t, page.body)
	f.do("GET", "/docs/actors", "", "If-None-Match", page.header.Get("ETag")).wants(304)
	f.do("GET", "/docs/none", "").problem(404, "no-such-route")
	f.do("POST", "/docs/actors", "").problem(405, "method-not-allowed")
}
