package api

import (
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

// Query parameters of a request for a link.
const (
	dispositionParameter = "disposition"
	expiresParameter     = "expires"
)

// A linkDocument contains a link to the content of an object, or the reason why none exists.
type linkDocument struct {
	Link    *string    `json:"link"`
	Expires *time.Time `json:"expires,omitempty"`
	Reason  string     `json:"reason,omitempty"`
}

func (s *Server) linkObject(w http.ResponseWriter, r *http.Request) error {
	values, err := query.Parse(r, dispositionParameter, expiresParameter)
	if err != nil {
		return err
	}
	id, err := objectID(r)
	if err != nil {
		return err
	}
	want := ledger.LinkRequest{ContentType: r.Header.Get("Content-Type"), Encoding: r.Header.Get("Content-Encoding")}
	switch disposition := values.Get(dispositionParameter); disposition {
	case "", "inline":
	case "attachment":
		want.Attachment = true
	default:
		return refuse(invalid, "disposition: want inline or attachment, got %q.", domain.Shorten(disposition))
	}
	seconds, err := numberOf(values.Get(expiresParameter), expiresParameter, 0, 1, int(ledger.MaxLinkTime/time.Second))
	if err != nil {
		return err
	}
	want.Expires = time.Duration(seconds) * time.Second
	link, err := s.opts.Objects.Link(r.Context(), id, want)
	if err != nil {
		return err
	}
	document := linkDocument{Reason: string(link.Missing)}
	if link.Missing == "" {
		expires := link.Expires.UTC().Truncate(time.Second)
		document.Link, document.Expires = &link.URL, &expires
	}
	writeJSON(w, http.StatusOK, document)
	return nil
}
