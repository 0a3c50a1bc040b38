package api

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

// objectsPath is the path of the object rows.
const objectsPath = "/v1/objects"

// requireObjects refuses requests if the hub has no store for objects.
func (s *Server) requireObjects(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if s.opts.Objects == nil {
			return &problemError{problem: notProvisioned}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// requireObjectReader refuses requests without an operator token, unless only this machine can
// reach the hub.
func (s *Server) requireObjectReader(next http.Handler) http.Handler {
	if s.opts.Identity == nil && s.opts.IsOwnHost != nil && s.opts.NoProxies {
		return next
	}
	return s.requireOperator(next)
}

// Query parameters of lists that are not filters.
const (
	limitParameter = "limit"
	orderParameter = "order"
	tokenParameter = "pageToken"
)

// listValues reads the query of a list, and returns its values and its filter. known are the
// parameters that are not filters.
func listValues(r *http.Request, known ...string) (url.Values, ledger.Filter, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, ledger.Filter{}, refuse(invalid, "The query is malformed: %v.", err)
	}
	for _, name := range []string{"page", "rowsPerPage"} {
		if values.Has(name) {
			return nil, ledger.Filter{}, refuse(invalid, "%s: pages have no numbers. The next one is at links.next of each page, whose %s says where it begins; %s is the size of a page.", name, tokenParameter, limitParameter)
		}
	}
	for _, name := range known {
		if n := len(values[name]); n > 1 {
			return nil, ledger.Filter{}, refuse(invalid, "Query parameter %s occurs %d times; send it once.", name, n)
		}
	}
	f, err := ledger.ParseFilter(values, known...)
	return values, f, err
}

func (s *Server) listObjects(w http.ResponseWriter, r *http.Request) error {
	values, f, err := listValues(r, limitParameter, orderParameter, tokenParameter)
	if err != nil {
		return err
	}
	q := ledger.Query{Filter: f, Token: values.Get(tokenParameter)}
	if q.Limit, err = numberOf(values.Get(limitParameter), limitParameter, ledger.DefaultPage, 1, ledger.MaxPage); err != nil {
		return err
	}
	switch order := values.Get(orderParameter); order {
	case "", "key":
	case "any":
		q.AnyOrder = true
	default:
		return refuse(invalid, "order: want key or any, got %q.", domain.Shorten(order))
	}
	page, err := s.opts.Objects.List(r.Context(), q)
	if err != nil {
		return err
	}
	writeObjects(w, r, values, page)
	return nil
}

func writeObjects(w http.ResponseWriter, r *http.Request, values url.Values, page ledger.Page) {
	results := make([]objectDocument, len(page.Rows))
	for i := range page.Rows {
		results[i] = documentOfObject(&page.Rows[i])
	}
	writeJSON(w, http.StatusOK, struct {
		Results []objectDocument `json:"results"`
		Damaged int              `json:"damaged,omitempty"`
		Links   linksDocument    `json:"links"`
	}{results, len(page.Damaged), linksOf(r, values, page.Next)})
}

// linksOf returns a link to the next page, which starts at token. If token is "", there is no next
// page.
func linksOf(r *http.Request, values url.Values, token string) linksDocument {
	if token == "" {
		return linksDocument{}
	}
	values.Set(tokenParameter, token)
	next := r.URL.EscapedPath() + "?" + values.Encode()
	return linksDocument{&next}
}

func (s *Server) countObjects(w http.ResponseWriter, r *http.Request) error {
	values, f, err := listValues(r, tokenParameter)
	if err != nil {
		return err
	}
	count, err := s.opts.Objects.Count(r.Context(), f, values.Get(tokenParameter))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		Count int64         `json:"count"`
		Exact bool          `json:"exact"`
		Links linksDocument `json:"links"`
	}{count.Rows, count.Next == "" && !values.Has(tokenParameter), linksOf(r, values, count.Next)})
	return nil
}

func (s *Server) getObject(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := objectID(r)
	if err != nil {
		return err
	}
	row, err := s.opts.Objects.Find(r.Context(), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, documentOfObject(&row))
	return nil
}

func (s *Server) objectHistory(w http.ResponseWriter, r *http.Request) error {
	values, err := query.Parse(r, limitParameter, "paired", tokenParameter)
	if err != nil {
		return err
	}
	id, err := objectID(r)
	if err != nil {
		return err
	}
	if paired := values.Get("paired"); !slices.Contains([]string{"", "true", "false"}, paired) {
		return refuse(invalid, "paired: want true or false, got %q.", domain.Shorten(paired))
	} else if paired == "true" {
		return s.pairedHistory(w, r, values, id)
	}
	limit, err := numberOf(values.Get(limitParameter), limitParameter, ledger.DefaultPage, 1, ledger.MaxPage)
	if err != nil {
		return err
	}
	page, err := s.opts.Objects.History(r.Context(), id, limit, values.Get(tokenParameter))
	if err != nil {
		return err
	}
	writeObjects(w, r, values, page)
	return nil
}

func (s *Server) pairedHistory(w http.ResponseWriter, r *http.Request, values url.Values, id ledger.RowID) error {
	for _, name := range []string{limitParameter, tokenParameter} {
		if values.Has(name) {
			return refuse(invalid, "%s: paired=true returns all pairs in one response; leave %s out.", name, name)
		}
	}
	pairs, err := s.opts.Objects.Pairs(r.Context(), id)
	if err != nil {
		return err
	}
	results := make([]pairDocument, len(pairs))
	for i := range pairs {
		results[i] = documentOfPair(&pairs[i])
	}
	writeJSON(w, http.StatusOK, struct {
		Results []pairDocument `json:"results"`
		Links   linksDocument  `json:"links"`
	}{results, linksDocument{}})
	return nil
}

// objectID returns the row id in the path of a request.
func objectID(r *http.Request) (ledger.RowID, error) {
	id, err := ledger.ParseRowID(pathparam.Value(r, "objectId"))
	if err == nil {
		recordOf(r.Context()).note(slog.String("bucket", id.Name.Bucket()), slog.String("key", domain.Shorten(id.Name.Key())))
	}
	return id, err
}
