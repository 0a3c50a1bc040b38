package watch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// MaxDocument is the maximum length, in bytes, of a document that a client stores.
const MaxDocument = 64 << 10

// A Condition restricts a change to certain versions of a document. The zero Condition permits the
// change of any version, and of a document that does not exist.
type Condition struct {
	Exists   bool     // the document must exist, in any version
	IsAbsent bool     // the document must not exist
	Versions []string // permitted versions; nil: any version
}

// ErrChanged reports that a document does not meet the [Condition] of a change. Its kind is
// Conflict.
var ErrChanged = errors.New("it has changed, or does not exist")

// canChange reports whether c permits a change of r. r is nil if the document does not exist.
func (c *Condition) canChange(r *repository.Resource) bool {
	if r == nil {
		return !c.Exists && c.Versions == nil
	}
	return !c.IsAbsent && (c.Versions == nil || slices.Contains(c.Versions, string(r.Version)))
}

// A Document is a small JSON document that a client stores below /v1/resources.
type Document struct {
	Body    []byte // JSON
	Changed time.Time
	Version string // identifies the version of the document; each change creates a new version
}

func viewDocument(r *repository.Resource) *Document {
	return &Document{Body: r.Body, Changed: r.Changed, Version: string(r.Version)}
}

// Document returns a document that a client has stored. It fails with NotFound if the document does
// not exist.
func (s *Service) Document(ctx context.Context, r domain.Resource) (*Document, error) {
	found, err := s.ports.Resources.Resource(ctx, r)
	if err != nil {
		return nil, err
	}
	return viewDocument(found), nil
}

// PutDocument stores a client's document. created reports whether the document is new. PutDocument
// fails with [ErrChanged] if the condition is not met.
func (s *Service) PutDocument(ctx context.Context, r domain.Resource, body []byte, when Condition) (stored *Document, created bool, err error) {
	err = s.changeResource(ctx, r, &when, func(found *repository.Resource) error {
		next := &repository.Resource{Resource: r, Body: body, Changed: s.opts.Clock().UTC().Truncate(time.Microsecond)}
		if found != nil {
			next.Version = found.Version
		}
		var err error
		next.Version, err = s.ports.Resources.PutResource(ctx, next)
		stored, created = viewDocument(next), found == nil
		return err
	})
	return stored, created, err
}

// DeleteDocument deletes a client's document. It fails with NotFound if the document does not
// exist, and with [ErrChanged] if the condition is not met.
func (s *Service) DeleteDocument(ctx context.Context, r domain.Resource, when Condition) error {
	return s.changeResource(ctx, r, &when, func(found *repository.Resource) error {
		if found == nil {
			return domain.Errorf(domain.NotFound, "there is no such resource")
		}
		return s.ports.Resources.DeleteResource(ctx, r, found.Version)
	})
}

// changeResource reads a document, checks the condition, and calls store with the document, or with
// nil if the document does not exist. If the document changes between the read and the write, it
// repeats all steps.
func (s *Service) changeResource(ctx context.Context, r domain.Resource, when *Condition, store func(found *repository.Resource) error) error {
	for range maxReplacements {
		found, err := s.ports.Resources.Resource(ctx, r)
		if domain.KindOf(err) == domain.NotFound {
			found, err = nil, nil
		}
		if err != nil {
			return err
		}
		if !when.canChange(found) {
			return domain.Errorf(domain.Conflict, "%w", ErrChanged)
		}
		err = store(found)
		hasChanged := domain.KindOf(err) == domain.Conflict || domain.KindOf(err) == domain.NotFound && found != nil
		if !hasChanged {
			return err
		}
		// Another request changed the document after it was read, so the loop reads it again.
	}
	return domain.Errorf(domain.Busy, "%s is being changed by others", r)
}
