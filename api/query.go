package api

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// query returns the query parameters of r, each of which must be known and be
// there at most once.
func query(r *http.Request, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(invalid, "The query is malformed: %v.", err)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // so that the same request gets the same answer
	for _, name := range names {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return nil, refuse(invalid, "Unknown query parameter %q; this route has none.", domain.Clip(name))
		case !slices.Contains(known, name):
			return nil, refuse(invalid, "Unknown query parameter %q; known are %s.", domain.Clip(name), joinWords(known))
		case len(values[name]) > 1:
			return nil, refuse(invalid, "Query parameter %s is there %d times; send it once.", name, len(values[name]))
		}
	}
	return values, nil
}
