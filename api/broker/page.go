package broker

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
)

// The sizes of pages.
const (
	defaultSize = 25
	maxSize     = 100
)

// A listPage is the part of a list that a request selects.
type listPage struct {
	values url.Values
	size   int
	first  string // "": from the beginning
}

// pageOf reads the query of a list, which may have size, first, and the other
// known parameters.
func pageOf(r *http.Request, known ...string) (*listPage, error) {
	values, err := query.Parse(r, append([]string{"first", "size"}, known...)...)
	if err != nil {
		return nil, err
	}
	p := &listPage{values: values, first: values.Get("first")}
	p.size, err = sizeOf(values, defaultSize, maxSize)
	return p, err
}

func sizeOf(values url.Values, byDefault, limit int) (int, error) {
	if !values.Has("size") {
		return byDefault, nil
	}
	n, err := strconv.Atoi(values.Get("size"))
	if err != nil || n < 1 || n > limit {
		return 0, domain.Errorf(domain.Invalid, "size: want 1 to %d, got %q", limit, domain.Clip(values.Get("size")))
	}
	return n, nil
}

// nextPath returns the path of the page of the same list that begins with first; "" for none.
func (p *listPage) nextPath(path, first string) string {
	if first == "" {
		return ""
	}
	values := url.Values{}
	for name, value := range p.values {
		values[name] = value
	}
	values.Set("first", first)
	return path + "?" + values.Encode()
}

// firstEntry returns the entry of the message with which a list begins.
func (p *listPage) firstEntry() (domain.EntryID, error) {
	if p.first == "" {
		return domain.EntryID{}, nil
	}
	id, isOurs := domain.ParseMessageID(p.first)
	if !isOurs {
		return id, domain.Errorf(domain.Invalid, "first: want the id of a message as the broker gives it, got %q", domain.Clip(p.first))
	}
	return id, nil
}
