package pathparam_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/internal/pathparam"
)

func TestValue_IsDecodedOnce(t *testing.T) {
	for path, want := range map[string]string{
		"plain":       "plain",
		"a%20b":       "a b",
		"a+b":         "a+b",
		"a%2Bb":       "a+b",
		"a%2Fb":       "a/b",
		"a%2fb%25":    "a/b%",
		"50%25":       "50%",
		"50%2525":     "50%25",
		"%2541":       "%41",
		"a%252Fb":     "a%2Fb",
		"a%2Fb%252Fc": "a/b%2Fc",
		"%E2%82%AC":   "€",
	} {
		t.Run(path, func(t *testing.T) {
			got := "not called"
			router := chi.NewRouter()
			router.Get("/things/{name}/rest", func(_ http.ResponseWriter, r *http.Request) { got = pathparam.Value(r, "name") })
			server := httptest.NewServer(router)
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/things/"+path+"/rest", http.NoBody)
			require.NoError(t, err)
			response, err := server.Client().Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, want, got)
		})
	}
}

func TestValue_OfAnUnknownNameIsEmpty(t *testing.T) {
	router := chi.NewRouter()
	got := "not called"
	router.Get("/{name}", func(_ http.ResponseWriter, r *http.Request) { got = pathparam.Value(r, "other") })
	router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", http.NoBody))
	require.Empty(t, got)
}
