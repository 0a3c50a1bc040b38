// Package pathparam reads the path parameters of a request, and decodes their percent-encoding
// exactly once.
package pathparam

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
)

// Value returns the path parameter that is called name in the pattern of the route, or "". If the
// path is encoded in an unusual form, such as a%2Fb, chi matches the encoded path, and Value decodes
// the parameter. Otherwise chi matches the path that net/http has decoded: the parameter a%2525 is
// already a%25, and must not be decoded again.
func Value(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	if plain, err := url.PathUnescape(value); err == nil {
		return plain
	}
	return value
}
