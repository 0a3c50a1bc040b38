package watch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// MaxDocument is the limit for a document of clients, in bytes.
const MaxDocument = 64 << 10

// A Condition restricts a change to some versions of a document. The zero Condition permits any
// version, and a document that does not exist.
type Condition struct {
	Exists   bool     // the document exists, in any version
	IsAbsent bool     // the document does not exist
	Versions []string // nil: any
}

// ErrChanged reports that a document does not fulfil the [Condition] of a change. Its kind is Conflict.
var ErrChanged = errors.New("it has changed, or does not exist")

// canChange reports whether the change may be made to r; nil means a document that does not
// exist.
func (c *Condition) canChange(r *repository.Resource) bool {
	if r == nil {
		return !c.Exists && c.Versions == nil
	}
	return !c.IsAbsent && (c.Versions == nil || slices.Contains(c.Versions, string(r.Version)))
}

// A Document is a document of clients.
type Document struct {
	Body    []byte // JSON
	Changed time.Time
	Version string // another one after each change
}

func viewDocument(r *repository.Resource) *Document {
	return &Document{Body: r.Body, Changed: r.Changed, Version: string(r.Version)}
}

// Document returns a document of clients. It fails with NotFound if it does not exist.
func (s *Service) Document(ctx context.Context, r domain.Resource) (*Document, error) {
	found, err := s.ports.Resources.Resource(ctx, r)
	if err != nil {
		return nil, err
	}
	return viewDocument(found), nil
}

// PutDocument stores a document of clients. created reports whether it is new. It fails with
// [ErrChanged] if the condition is not fulfilled.
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

// DeleteDocument deletes a document of clients. It fails with NotFound if the document does not
// exist, and with [ErrChanged] if the condition is not fulfilled.
func (s *Service) DeleteDocument(ctx context.Context, r domain.Resource, when Condition) error {
	return s.changeResource(ctx, r, &when, func(found *repository.Resource) error {
		if found == nil {
			return domain.Errorf(domain.NotFound, "there is no such resource")
		}
		return s.ports.Resources.DeleteResource(ctx, r, found.Version)
	})
}

// changeResource calls store with a document that fulfils a condition, until the document does
// not change meanwhile. found is nil if there is no document.
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
		// Another request has changed the document after it was read.
	}
	return domain.Errorf(domain.Busy, "%s is being changed by others", r)
}
