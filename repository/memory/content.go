package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Content stores objects in a map. It is safe for concurrent use.
type Content struct {
	mu      sync.Mutex
	objects map[string][]byte // the bytes of an object are never modified
}

var _ repository.Content = (*Content)(nil)

// NewContent returns an empty Content.
func NewContent() *Content { return &Content{objects: make(map[string][]byte)} }

// Put implements [repository.Content].
func (c *Content) Put(ctx context.Context, name string, r io.Reader) error {
	if err := repository.CheckObjectName(name); err != nil {
		return err
	}
	data, err := io.ReadAll(objectReader{ctx, r})
	if err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.objects[name]; ok {
		return domain.Errorf(domain.Conflict, "put %s: there is such an object already", name)
	}
	c.objects[name] = data
	return nil
}

// storeOwn stores an object that this package creates itself.
func (c *Content) storeOwn(name string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[name] = data
}

// Open implements [repository.Content].
func (c *Content) Open(ctx context.Context, s repository.Section) (io.ReadCloser, error) {
	if err := repository.CheckObjectName(s.Object); err != nil {
		return nil, err
	}
	if s.Offset < 0 || s.Length < 0 {
		return nil, domain.Errorf(domain.Invalid, "open %s: offset %d and length %d: want none below 0", s.Object, s.Offset, s.Length)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.Object, err)
	}
	c.mu.Lock()
	data, ok := c.objects[s.Object]
	c.mu.Unlock()
	size := int64(len(data))
	switch {
	case !ok:
		return nil, domain.Errorf(domain.NotFound, "open %s: there is no such object", s.Object)
	case s.Offset > size || s.Length > size-s.Offset:
		return nil, domain.Errorf(domain.Damaged, "open %s: want %d bytes from %d, but it has only %d", s.Object, s.Length, s.Offset, size)
	}
	return io.NopCloser(bytes.NewReader(data[s.Offset:][:s.Length])), nil
}

// Delete implements [repository.Content].
func (c *Content) Delete(ctx context.Context, name string) error {
	if err := repository.CheckObjectName(name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, name)
	return nil
}

// DeleteFolder implements [repository.Content].
func (c *Content) DeleteFolder(ctx context.Context, folder string) error {
	if err := repository.CheckObjectName(folder); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete folder %s: %w", folder, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.objects, func(name string, _ []byte) bool { return strings.HasPrefix(name, folder+"/") })
	return nil
}

// An objectReader reads an object until its context ends, and then fails.
type objectReader struct {
	ctx context.Context
	r   io.Reader
}

func (r objectReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
