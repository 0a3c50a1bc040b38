// Package pathparam reads the parameters in the path of a request, and removes
// their percent-encoding exactly once.
package pathparam

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
)

// Value returns a parameter of the path by its name in the pattern of the route, or "".
//
// chi matches the escaped path only if it differs from the usual escaping of the path, such as
// a%2Fb. Otherwise it matches the path, which net/http has decoded: the parameter a%2525 is then
// a%25, and must not be decoded again.
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
