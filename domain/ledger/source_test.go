package ledger_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A store is a Source that contains objects of one bucket.
type store struct {
	repository.Source
	mu        sync.Mutex
	objects   map[string]repository.SourceObject
	failing   []error // errors to return from the next requests
	onRequest func()  // function that the store calls during each request
	n         int     // number of requests so far
	linked    repository.LinkOptions
}

func (s *store) Stat(_ context.Context, name domain.ObjectName, version *domain.VersionID) (repository.SourceObject, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.onRequest != nil {
		s.onRequest()
	}
	if len(s.failing) > 0 {
		err := s.failing[0]
		s.failing = s.failing[1:]
		return repository.SourceObject{}, err
	}
	found, ok := s.objects[name.Key()]
	switch {
	case name.Bucket() != "bucket":
		return found, repository.ErrNoStore
	case !ok || version != nil && *version != found.Version:
		return found, domain.Errorf(domain.NotFound, "none")
	}
	return found, nil
}

func (s *store) Link(_ context.Context, name domain.ObjectName, version domain.VersionID, opts repository.LinkOptions) (string, error) {
	if s.linked = opts; name.Key() == "in a folder" {
		return "", repository.ErrNoLinks
	}
	return "https://store.test/" + name.Key() + "?version=" + version.String(), nil
}

// put stores an object, or removes it if eTag is empty.
func (s *store) put(key, eTag string, facts domain.ObjectFacts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if eTag == "" {
		delete(s.objects, key)
		return
	}
	facts.ETag = eTag
	s.objects[key] = repository.SourceObject{Key: key, ObjectFacts: facts}
}

func newStore() *store { return &store{objects: make(map[string]repository.SourceObject)} }

func nameOf(t *testing.T, bucket, key string) domain.ObjectName {
	t.Helper()
	name, err := domain.ParseObjectName(bucket, key)
	require.NoError(t, err)
	return name
}

func sequencer(t *testing.T, text string) domain.Sequencer {
	t.Helper()
	s, err := domain.ParseSequencer(domain.OpaqueSequencer, text)
	require.NoError(t, err)
	return s
}

// ingest stores one event of an object.
func ingest(t *testing.T, objects repository.Objects, name domain.ObjectName, e domain.ObjectEvent) {
	t.Helper()
	results, err := objects.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: e}})
	require.NoError(t, err)
	require.NoError(t, results[0].Err)
}

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
