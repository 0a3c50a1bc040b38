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

// A LinkRequest has the options of a link.
type LinkRequest struct {
	Expires     time.Duration // 0: Options.LinkTime, which is the limit
	Attachment  bool          // a browser should save the content instead of showing it
	ContentType string        // content type of the answer; empty: the content type in the store
	Encoding    string        // Content-Encoding of the answer; empty: the encoding in the store
}

// A Link is a URL by which anyone may read the content of an object until the link expires, or
// the reason why no link can be made.
type Link struct {
	URL     string
	Expires time.Time
	Missing LinkMissing // empty: there is a URL
}

// MaxLinkTime is the limit for Options.LinkTime.
const MaxLinkTime = repository.MaxLinkTime

// LinkMissing says why there is no link.
type LinkMissing string

// The reasons why there is no link.
const (
	LinkDeleted    LinkMissing = "deleted"     // no version of the object is current
	LinkNotCurrent LinkMissing = "not-current" // the row is not the current one
	LinkArchived   LinkMissing = "archived"    // the content cannot be read at once
	LinkTooLarge   LinkMissing = "too-large"   // the content is over the limit
	LinkChanged    LinkMissing = "changed"     // the store has other content, whose event has not arrived yet
	LinkNoStore    LinkMissing = "no-store"    // the store is not configured
	LinkNoLinks    LinkMissing = "no-links"    // the store does not support links
)

// Link returns a link to the content of a current row. It asks the store first, because the
// content must exist and belong to this row. It fails with NotFound if there is no such row.
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

// missingContent returns the reason in the facts of an event why its content has no link, if
// there is one.
func (s *Service) missingContent(e *domain.ObjectEvent) LinkMissing {
	switch {
	case !e.IsAccessible():
		return LinkArchived
	case s.opts.LinkLimit > 0 && e.Size != nil && *e.Size > s.opts.LinkLimit:
		return LinkTooLarge
	}
	return ""
}

// missingInStore asks the store, and returns the reason why the content of the current row has
// no link, if there is one.
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

// contentDisposition returns the value of the header Content-Disposition (RFC 6266) with the
// file name at the end of a key.
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
