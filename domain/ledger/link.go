package ledger

import (
	"context"
	"errors"
	"mime"
	"path"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A LinkRequest contains the options for a link to an object's content.
type LinkRequest struct {
	Expires     time.Duration // time until the link expires, up to Options.LinkTime; 0: Options.LinkTime
	Attachment  bool          // a browser should save the content instead of displaying it
	ContentType string        // content type of the response; empty: the content type in the store
	Encoding    string        // Content-Encoding of the response; empty: the encoding in the store
}

// A Link is a URL with which any client can read an object's content until the link expires. If the
// object has no link, Missing states the reason.
type Link struct {
	URL     string
	Expires time.Time
	Missing LinkMissing // reason why URL is empty; "": URL is set
}

// MaxLinkTime is the maximum value of Options.LinkTime.
const MaxLinkTime = repository.MaxLinkTime

// LinkMissing states why an object has no link.
type LinkMissing string

// The values of LinkMissing.
const (
	LinkDeleted    LinkMissing = "deleted"     // no version of the object is current
	LinkNotCurrent LinkMissing = "not-current" // the row is not current
	LinkArchived   LinkMissing = "archived"    // the content is archived and cannot be read immediately
	LinkTooLarge   LinkMissing = "too-large"   // the content is larger than Options.LinkLimit
	LinkChanged    LinkMissing = "changed"     // the store has different content, whose event has not arrived yet
	LinkNoStore    LinkMissing = "no-store"    // the store of the bucket is not configured
	LinkNoLinks    LinkMissing = "no-links"    // the store does not support links
)

// Link returns a link to the content of a current row. It first requests the object's state from
// the store, because the content must exist and belong to this row. Link fails with NotFound if the
// row does not exist.
func (s *Service) Link(ctx context.Context, id RowID, r LinkRequest) (Link, error) {
	if r.Expires == 0 {
		r.Expires = s.opts.LinkTime
	}
	if r.Expires < time.Second || r.Expires > s.opts.LinkTime {
		return Link{}, domain.Errorf(domain.Invalid, "expires: want a time from 1s to %s, got %s", s.opts.LinkTime, r.Expires)
	}
	object, _, err := s.findRow(ctx, id)
	if err != nil {
		return Link{}, err
	}
	name, current := id.Name, object.Current
	switch {
	case current == nil:
		return Link{Missing: LinkDeleted}, nil
	case current.ID() != id.Row:
		return Link{Missing: LinkNotCurrent}, nil
	}
	if missing := s.missingContent(&current.ObjectEvent); missing != "" {
		return Link{Missing: missing}, nil
	}
	missing, err := s.missingInStore(ctx, name, current)
	if err != nil || missing != "" {
		return Link{Missing: missing}, err
	}
	expires := s.opts.Clock().Add(r.Expires)
	url, err := s.Source.Link(ctx, name, current.Version, repository.LinkOptions{
		Expires: r.Expires, Disposition: contentDisposition(r.Attachment, name.Key()), ContentType: r.ContentType, ContentEncoding: r.Encoding,
	})
	switch {
	case errors.Is(err, repository.ErrNoLinks):
		return Link{Missing: LinkNoLinks}, nil
	case err != nil:
		return Link{}, err
	}
	return Link{URL: url, Expires: expires}, nil
}

// missingContent returns the reason why there is no link to the content that e describes. It
// returns "" if a link is possible.
func (s *Service) missingContent(e *domain.ObjectEvent) LinkMissing {
	switch {
	case !e.IsAccessible():
		return LinkArchived
	case s.opts.LinkLimit > 0 && e.Size != nil && *e.Size > s.opts.LinkLimit:
		return LinkTooLarge
	}
	return ""
}

// missingInStore requests an object's state from the store. It returns the reason why there is no
// link to the content of the current row, or "".
func (s *Service) missingInStore(ctx context.Context, name domain.ObjectName, current *domain.ObjectRow) (LinkMissing, error) {
	if s.Source == nil {
		return LinkNoStore, nil
	}
	found, err := s.Source.Stat(ctx, name, &current.Version)
	switch {
	case errors.Is(err, repository.ErrNoStore):
		return LinkNoStore, nil
	case domain.KindOf(err) == domain.NotFound || err == nil && found.Marker:
		return LinkDeleted, nil
	case err != nil:
		return "", err
	case found.ETag != "" && current.ETag != "" && found.ETag != current.ETag:
		return LinkChanged, nil
	}
	return s.missingContent(&domain.ObjectEvent{Type: domain.ObjectCreated, ObjectFacts: found.ObjectFacts}), nil
}

// contentDisposition returns the value of the header Content-Disposition (RFC 6266). The file name is
// the last part of the key.
func contentDisposition(isAttachment bool, key string) string {
	kind := "inline"
	if isAttachment {
		kind = "attachment"
	}
	name := path.Base(key)
	if key[len(key)-1] == '/' || name == "." || name == ".." {
		return kind
	}
	return mime.FormatMediaType(kind, map[string]string{"filename": name})
}
