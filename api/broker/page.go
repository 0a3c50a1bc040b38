package broker

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
)

// Default and maximum number of elements in a page.
const (
	defaultSize = 25
	maxSize     = 100
)

// A listPage is the page of a list that a request selects.
type listPage struct {
	values url.Values
	size   int
	first  string // position of the first element; "" for the start of the list
}

// pageOf reads the page that the query selects. The query may contain the parameters size, first
// and known.
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
		return 0, domain.Errorf(domain.Invalid, "size: want 1 to %d, got %q", limit, domain.Shorten(values.Get("size")))
	}
	return n, nil
}

// nextPath returns the path of the page whose first element is first, or "" if first is "".
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

// firstEntry returns the entry id of the page's first message.
func (p *listPage) firstEntry() (domain.EntryID, error) {
	if p.first == "" {
		return domain.EntryID{}, nil
	}
	id, isOurs := domain.ParseMessageID(p.first)
	if !isOurs {
		return id, domain.Errorf(domain.Invalid, "first: want the id of a message as the broker gives it, got %q", domain.Shorten(p.first))
	}
	return id, nil
}
