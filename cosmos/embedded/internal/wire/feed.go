package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// serveFeed serves a GET of a container's documents: either the change feed or all documents.
func (s *Server) serveFeed(r *serverRequest, c *engine.Container) (Response, error) {
	switch mode := r.Header.Get("A-IM"); {
	case mode == "":
		return s.readAll(r, c)
	case !strings.EqualFold(mode, "Incremental Feed"):
		return Response{}, unsupportedError("change feed mode %q", mode)
	}
	var q engine.FeedRequest
	var err error
	if q.Partition, q.Prefix, q.Range, err = parseScope(r, c); err != nil {
		return Response{}, err
	}
	q.Scoped = q.Partition != ""
	if err := parseFeedStart(r, &q); err != nil {
		return Response{}, err
	}
	if q.MaxItems, err = maxItems(r); err != nil {
		return Response{}, err
	}
	if q.Consistency, err = s.parseConsistency(r); err != nil {
		return Response{}, err
	}
	at := q.Range
	if q.Scoped && at == nil {
		at = c.RangeOf(q.Partition)
	}
	if err := s.admitRequest(r, c, at); err != nil {
		return Response{}, err
	}
	page, err := s.engine.ChangeFeed(r.Context(), c, q)
	if err != nil {
		return Response{}, err
	}
	s.recordCharge(r, page.Charge)
	r.answer.Set("x-ms-session-token", sessionTokens(c, at, page.Session))
	r.answer.Set("x-ms-item-count", strconv.Itoa(page.Count))
	r.answer["Etag"] = []string{strconv.Quote(strconv.FormatUint(page.Last, 10))}
	if page.Count == 0 {
		return Response{Status: http.StatusNotModified}, nil
	}
	return Response{Status: http.StatusOK, Body: page.JSON}, nil
}

// parseFeedStart parses where a change feed continues: after the etag of the last page or, without an etag, at a time.
// The etag * means the time of the request.
func parseFeedStart(r *serverRequest, q *engine.FeedRequest) error {
	if known := r.Header.Get("If-None-Match"); known == "*" {
		q.FromNow = true
		return nil
	} else if known != "" {
		n, err := strconv.ParseUint(strings.Trim(known, `"`), 10, 63)
		if err != nil {
			return badRequest("If-None-Match %s is not the etag of a change feed", known)
		}
		q.After = n
		return nil
	}
	text := r.Header.Get("If-Modified-Since")
	if text == "" {
		return nil
	}
	// Azure's Go client sends UTC where HTTP requires GMT.
	since, err := http.ParseTime(strings.Replace(text, "UTC", "GMT", 1))
	if err != nil {
		return badRequest("If-Modified-Since %q is not a date", text)
	}
	q.Since = since.In(time.UTC)
	return nil
}

// readAll returns all documents, like a query without a condition.
func (s *Server) readAll(r *serverRequest, c *engine.Container) (Response, error) {
	const text = "SELECT * FROM c"
	q, err := s.engine.ParseQuery(r.Context(), text, nil)
	if err != nil {
		return Response{}, err
	}
	return s.servePage(r, c, q, text, true)
}
