package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Source is an object store for tests, which add and remove its objects. It is safe for concurrent
// use.
type Source struct {
	// BeforeList, if not nil, is called with the cursor before each List. If it returns an error, List
	// fails.
	BeforeList func(cursor string) error

	mu       sync.Mutex
	buckets  map[string]map[string]repository.SourceObject
	contents map[domain.ObjectName][]byte
}

var _ repository.Source = (*Source)(nil)

// NewSource returns a Source with the given buckets, which are empty.
func NewSource(buckets ...string) *Source {
	s := &Source{buckets: make(map[string]map[string]repository.SourceObject), contents: make(map[domain.ObjectName][]byte)}
	for _, bucket := range buckets {
		s.buckets[bucket] = make(map[string]repository.SourceObject)
	}
	return s
}

// Put sets the latest version of an object.
func (s *Source) Put(bucket string, o repository.SourceObject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[bucket][o.Key] = o
}

// PutContent sets the content of an object. The object has no properties other than its size.
func (s *Source) PutContent(name domain.ObjectName, content []byte) {
	size := int64(len(content))
	s.Put(name.Bucket(), repository.SourceObject{Key: name.Key(), ObjectFacts: domain.ObjectFacts{Size: &size}})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contents[name] = content
}

// Remove removes all versions of an object.
func (s *Source) Remove(bucket, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets[bucket], key)
}

// List implements [repository.Source]. The cursor is the last key of the previous page.
func (s *Source) List(ctx context.Context, bucket, prefix, cursor string, limit int) (repository.SourcePage, error) {
	if err := ctx.Err(); err != nil {
		return repository.SourcePage{}, fmt.Errorf("list objects of a store: %w", err)
	}
	if s.BeforeList != nil {
		if err := s.BeforeList(cursor); err != nil {
			return repository.SourcePage{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	objects, has := s.buckets[bucket]
	if !has {
		return repository.SourcePage{}, domain.Errorf(domain.NotFound, "there is no bucket %q", domain.Shorten(bucket))
	}
	var page repository.SourcePage
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if key <= cursor || !strings.HasPrefix(key, prefix) {
			continue
		}
		if len(page.Objects) == limit {
			page.Cursor = page.Objects[limit-1].Key
			break
		}
		page.Objects = append(page.Objects, objects[key])
	}
	return page, nil
}

// Stat implements [repository.Source].
func (s *Source) Stat(ctx context.Context, name domain.ObjectName, version *domain.VersionID) (repository.SourceObject, error) {
	if err := ctx.Err(); err != nil {
		return repository.SourceObject{}, fmt.Errorf("read the state of an object: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, has := s.buckets[name.Bucket()][name.Key()]
	if !has || o.Marker || version != nil && *version != o.Version {
		return repository.SourceObject{}, domain.Errorf(domain.NotFound, "there is no such object")
	}
	return o, nil
}

// Link implements [repository.Source].
func (s *Source) Link(context.Context, domain.ObjectName, domain.VersionID, repository.LinkOptions) (string, error) {
	return "", repository.ErrNoLinks
}

// Open implements [repository.Source].
func (s *Source) Open(ctx context.Context, name domain.ObjectName) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, has := s.contents[name]
	if !has {
		return nil, domain.Errorf(domain.NotFound, "there is no such object")
	}
	return io.NopCloser(objectReader{ctx, bytes.NewReader(content)}), nil
}
