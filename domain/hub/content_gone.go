package hub

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// The content store belongs to the hub, but a lifecycle rule, an operator or a restored backup may still delete objects
// from it. In content mode request, the domain can produce the content again. The bundle is therefore marked when the
// loss is detected, either by the ledger, from the events of the store (ContentGone), or by a download that does not
// find the object (contentMissing).
//
// The mark is a hint. Without it, a Peek returns the bundle, the download fails, and the failure sets the mark. Object
// names are not reused, so a download never returns different content. Payloads of events cannot be produced again; a
// missing payload is logged and counted.

// A ContentGoneError reports that the content of an open bundle was deleted. The next Peek asks the domain for new
// content. The error has kind Unavailable.
type ContentGoneError struct {
	Bundle domain.Bundle
	Cause  error
}

func (e *ContentGoneError) Error() string {
	return fmt.Sprintf("object %s was deleted, and the next Peek asks domain %s again: %v", e.Bundle.Object, e.Bundle.Cabinet.Origin, e.Cause)
}

func (e *ContentGoneError) Unwrap() error { return e.Cause }

// MissingContent is a kind of content that was deleted although a bundle needs it.
type MissingContent string

// The values of MissingContent.
const (
	MissingBundle  MissingContent = "bundle"  // MissingBundle is the content of a bundle, which the domain can produce again
	MissingPayload MissingContent = "payload" // MissingPayload is the payload of an event, which is lost
)

// contentMissing marks an open bundle whose content was not found. It returns the error for the reader.
func (h *Hub) contentMissing(ctx context.Context, b *domain.Bundle, cause error) error {
	if h.opts.Answers == nil {
		return domain.Errorf(domain.Damaged, "it is missing: %w", cause)
	}
	marked, err := h.opts.Answers.MarkGone(ctx, b.Cabinet.Recipient, b.ID, b.Object)
	switch {
	case domain.KindOf(err) == domain.NotFound: // the bundle is no longer open
	case err != nil:
		return fmt.Errorf("mark it as gone: %w", err)
	case marked.Gone:
		h.reportGone(ctx, &marked)
	}
	return domain.Errorf(domain.Unavailable, "%w", &ContentGoneError{Bundle: *b, Cause: cause})
}

// ContentGone records that an object was deleted from the content store. If it was the content of an open bundle, the
// next Peek asks the domain for new content. For any other object, ContentGone does nothing. It may be repeated.
func (h *Hub) ContentGone(ctx context.Context, object string) error {
	id, isContent := bundleOfObject(object)
	if !isContent || h.opts.Answers == nil {
		return nil
	}
	recipients, err := h.opts.Answers.BundleRecipients(ctx, id)
	if err != nil {
		return err
	}
	for _, recipient := range recipients {
		bundle, err := h.opts.Answers.MarkGone(ctx, recipient, id, object)
		switch kind := domain.KindOf(err); {
		case kind == domain.NotFound || kind == domain.Invalid: // the bundle is closed, or has a different content mode
		case err != nil:
			return fmt.Errorf("mark the content of bundle %s of %s as gone: %w", id, recipient, err)
		case bundle.Gone && bundle.Object == object:
			h.reportGone(ctx, &bundle)
		}
	}
	return nil
}

// objectName returns a new, unique name for the content of a bundle.
func objectName(folder string, id domain.BundleID) string {
	return fmt.Sprintf("%s/%s-%s", folder, id, randomID())
}

// bundleOfObject returns the bundle id that an object name contains. isContent is false if the name cannot come from
// objectName.
func bundleOfObject(object string) (id domain.BundleID, isContent bool) {
	base := path.Base(object)
	if n := len(id.String()); len(base) != 2*n+1 || base[n] != '-' || !strings.Contains(object, "/") {
		return id, false
	} else if _, err := domain.ParseBundleID(base[n+1:]); err != nil {
		return id, false
	} else {
		id, err = domain.ParseBundleID(base[:n])
		return id, err == nil
	}
}

func (h *Hub) reportGone(ctx context.Context, b *domain.Bundle) {
	h.opts.Missing(MissingBundle)
	h.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "the content of an open bundle was deleted; the next Peek asks its domain again",
		slog.String("bundle_id", b.ID.String()), slog.String("actor", b.Cabinet.Recipient.String()), slog.String("object", b.Object))
}

// payloadMissing logs and counts a payload that was deleted although its event is in an open bundle.
func (h *Hub) payloadMissing(ctx context.Context, object string) {
	h.opts.Missing(MissingPayload)
	h.opts.Logger.LogAttrs(ctx, slog.LevelError, "the payloads of events in an open bundle were deleted and cannot be made again; restore the object, or skip the bundle",
		slog.String("object", object))
}
