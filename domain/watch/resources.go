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

// A Condition says for which versions of a document a change is meant. The zero Condition is for any,
// and for a document that is not there.
type Condition struct {
	Exists   bool     // any version of a document that is there
	IsAbsent bool     // the document is not there
	Versions []string // nil: any
}

// ErrChanged reports that a document does not fulfil the [Condition] of a change. Its kind is Conflict.
var ErrChanged = errors.New("it has changed, or is not there")

// canChange reports whether a change may be made to r; nil: to a document that is not there.
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

// PutDocument stores a document of clients. created says whether there was none. It fails with
// [ErrChanged] unless the condition is fulfilled.
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

// DeleteDocument deletes a document of clients. It fails with NotFound if it does not exist, and with
// [ErrChanged] unless the condition is fulfilled.
func (s *Service) DeleteDocument(ctx context.Context, r domain.Resource, when Condition) error {
	return s.changeResource(ctx, r, &when, func(found *repository.Resource) error {
		if found == nil {
			return domain.Errorf(domain.NotFound, "there is no such resource")
		}
		return s.ports.Resources.DeleteResource(ctx, r, found.Version)
	})
}

// changeResource has store change a document that fulfils a condition. found is nil if there is no document.
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
		// Another request has changed the document since it was read.
	}
	return domain.Errorf(domain.Busy, "%s is being changed by others", r)
}
