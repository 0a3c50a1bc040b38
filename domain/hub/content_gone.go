package hub

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// The content store belongs to the hub. Nevertheless a lifecycle rule, an operator or a
// restored backup may delete objects. In content mode request, the domain can produce the
// content of a bundle again. So the bundle is marked as soon as one of these detects the loss:
//
//   - the ledger of objects, from the events of the store (ContentGone),
//   - a download whose object does not exist (contentMissing).
//
// The mark is a hint. Without it, a Peek returns the bundle, and its download fails and marks
// the bundle. Names of objects are not reused, so a download never returns another content.
// Payloads of events cannot be produced again: a missing payload is logged and counted.

// A ContentGoneError reports that the content of an open bundle was deleted. The next Peek asks
// the domain for new content. It is of kind Unavailable.
type ContentGoneError struct {
	Bundle domain.Bundle
	Cause  error
}

func (e *ContentGoneError) Error() string {
	return fmt.Sprintf("object %s was deleted, and the next Peek asks domain %s again: %v", e.Bundle.Object, e.Bundle.Cabinet.Origin, e.Cause)
}

func (e *ContentGoneError) Unwrap() error { return e.Cause }

// MissingContent is a kind of content that was deleted while a bundle needed it.
type MissingContent string

// The kinds of content that may be missing.
const (
	MissingBundle  MissingContent = "bundle"  // content of a bundle, which the domain can produce again
	MissingPayload MissingContent = "payload" // payload of an event, which is lost
)

// contentMissing marks an open bundle whose content was not found, and returns why it cannot be
// read.
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

// ContentGone records that an object of the content store was deleted. If it is the content of
// an open bundle, the next Peek asks the domain for new content. A call for another object, or
// a repeated call, changes nothing.
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
		case kind == domain.NotFound || kind == domain.Invalid: // the bundle is no longer open, or is a bundle of another recipient in another content mode
		case err != nil:
			return fmt.Errorf("mark the content of bundle %s of %s as gone: %w", id, recipient, err)
		case bundle.Gone && bundle.Object == object:
			h.reportGone(ctx, &bundle)
		}
	}
	return nil
}

// objectName returns the name of a new object for the content of a bundle. No name is returned
// twice.
func objectName(folder string, id domain.BundleID) string {
	return fmt.Sprintf("%s/%s-%s", folder, id, randomID())
}

// bundleOfObject returns the id of the bundle in the name of an object. isContent is false if
// objectName cannot have returned the name.
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

// payloadMissing reports a payload that was deleted while its event is in an open bundle.
func (h *Hub) payloadMissing(ctx context.Context, object string) {
	h.opts.Missing(MissingPayload)
	h.opts.Logger.LogAttrs(ctx, slog.LevelError, "the payloads of events in an open bundle were deleted and cannot be made again; restore the object, or skip the bundle",
		slog.String("object", object))
}
