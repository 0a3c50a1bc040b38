package memory

import (
	"bytes"
	"context"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An Exchange is a map with the content that the hub and the domains exchange. It is safe for concurrent
// use.
type Exchange struct{ *Content }

var _ repository.Exchange = (*Exchange)(nil)

// NewExchange returns an empty Exchange.
func NewExchange() *Exchange { return &Exchange{NewContent()} }

const exchangeScheme, exchangeHost, exchangePath = "memory", "account", "/exchange/"

// Upload stores data under a name, as a domain does, and returns its URI. It replaces an existing object.
func (e *Exchange) Upload(name string, data []byte) (uri string) {
	e.storeOwn(name, bytes.Clone(data))
	return (&url.URL{Scheme: exchangeScheme, Host: exchangeHost, Path: exchangePath + name}).String()
}

// Name implements [repository.Exchange].
func (e *Exchange) Name(uri string) (string, error) { return nameOf(uri) }

// Fetch implements [repository.Exchange].
func (e *Exchange) Fetch(ctx context.Context, uri string) (io.ReadCloser, error) {
	name, err := nameOf(uri)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data, ok := e.sharedObject(name)
	if !ok {
		return nil, domain.Errorf(domain.NotFound, "fetch %q: there is no such object", name)
	}
	return &sharedReader{e: e, name: name, data: data}, nil
}

func (e *Exchange) sharedObject(name string) ([]byte, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	data, ok := e.objects[name]
	return data, ok
}

// A sharedReader reads an object. It fails if the object changes before it is read completely.
type sharedReader struct {
	e    *Exchange
	name string
	data []byte
	at   int
}

func (f *sharedReader) Read(p []byte) (int, error) {
	if f.at == len(f.data) {
		return 0, io.EOF
	}
	if now, ok := f.e.sharedObject(f.name); !ok || len(now) != len(f.data) || &now[0] != &f.data[0] {
		return 0, domain.Errorf(domain.Damaged, "fetch %q: it changed while it was read", f.name)
	}
	n := copy(p, f.data[f.at:])
	f.at += n
	return n, nil
}

func (f *sharedReader) Close() error { return nil }

// Discard implements [repository.Exchange].
func (e *Exchange) Discard(ctx context.Context, uri string) error {
	name, err := nameOf(uri)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.objects, name)
	return nil
}

// nameOf returns the name of the object that uri refers to. The error does not contain the URI, which
// may have a secret.
func nameOf(uri string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", domain.Errorf(domain.Invalid, "content URI: %s; want %s://%s%sNAME", why, exchangeScheme, exchangeHost, exchangePath)
	}
	u, err := url.Parse(uri)
	if err != nil || u.User != nil || u.Fragment != "" {
		return refuse("it cannot be read, or carries a user or a fragment")
	}
	escaped, ok := strings.CutPrefix(u.EscapedPath(), exchangePath)
	if u.Scheme != exchangeScheme || u.Host != exchangeHost || !ok {
		return refuse("it is of a foreign account or container")
	}
	name, err := url.PathUnescape(escaped)
	segments := strings.Split(name, "/")
	if err != nil || slices.Contains(segments, "") || slices.Contains(segments, ".") || slices.Contains(segments, "..") {
		return refuse("its name is empty, or has a segment that is empty, . or ..")
	}
	return name, nil
}
