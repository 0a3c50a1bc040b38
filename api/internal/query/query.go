// Package query reads the query parameters of requests. It refuses unknown parameters, because a
// misspelled parameter would otherwise be ignored.
package query

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// Parse returns the query parameters of r. Each parameter must be one of known, and occur at most
// once. Errors of Parse are Invalid.
func Parse(r *http.Request, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "The query is malformed: %v.", err)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // sorted, so that the same request always results in the same error
	for _, name := range names {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return nil, domain.Errorf(domain.Invalid, "Unknown query parameter %q; this route has none.", domain.Shorten(name))
		case !slices.Contains(known, name):
			return nil, domain.Errorf(domain.Invalid, "Unknown query parameter %q; known are %s.", domain.Shorten(name), strings.Join(known, ", "))
		case len(values[name]) > 1:
			return nil, domain.Errorf(domain.Invalid, "Query parameter %s occurs %d times; send it once.", name, len(values[name]))
		}
	}
	return values, nil
}
