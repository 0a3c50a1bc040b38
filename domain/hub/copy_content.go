package hub

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// A hub and a domain exchange content through storage that both can write. The hub copies the content before using it.
// If the domain later stores different content under the same name, no bundle changes.

// listName returns the object name for the list of a bundle's event ids, which the domain reads. The name contains the
// numbers of the events, which are never reused. So a list cannot overwrite an older one, even if a bundle id is reused
// after years.
func listName(folder string, b *domain.Bundle) string {
	return fmt.Sprintf("%s/%s_%d-%d", folder, ProcessID(b.ID, b.Cabinet.Recipient), b.First, b.Last)
}

// listSuffix matches the end of every list name. No content of a domain has such a name.
var listSuffix = regexp.MustCompile(`/[0-9a-fA-F-]{36}_[^/]+_[0-9]+-[0-9]+$`)

// isOwn reports whether an object name returned by a domain belongs to the bundle. Only then may the hub remove the
// object.
func (i *contentFetch) isOwn(name string) bool {
	rest, ok := strings.CutPrefix(path.Base(name), ProcessID(i.bundle.ID, i.key.actor))
	return ok && (rest == "" || rest[0] == '_' || rest[0] == '.') // otherwise the name may contain a longer actor id that begins with this one
}

// appendID appends an event id in the layout of the original protocol, a .NET GUID: in the first three groups, the
// bytes are reversed.
func appendID(list []byte, id domain.EventID) []byte {
	return append(list, id[3], id[2], id[1], id[0], id[5], id[4], id[7], id[6],
		id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15])
}

// copyContent copies the content at uri to a new object in the hub's content store. It returns the object and its body.
// wrong tells why content is not acceptable; err reports a failed read or write.
func (h *Hub) copyContent(ctx context.Context, i *contentFetch, uri string) (object string, body domain.Body, wrong *domain.ContentFailure, err error) {
	if name, err := h.opts.Exchange.Name(uri); err == nil && listSuffix.MatchString(name) {
		return "", body, &domain.ContentFailure{Reason: "foreign-content", Text: "content URI: it names a list of ids, which the hub has left; name the content"}, nil
	}
	select {
	case h.fetches.copying <- struct{}{}:
		defer func() { <-h.fetches.copying }()
	case <-ctx.Done():
		return "", body, nil, domain.Errorf(domain.Busy, "too many other contents are being fetched: %w", ctx.Err())
	}
	left, err := h.opts.Exchange.Fetch(ctx, uri)
	switch kind := domain.KindOf(err); {
	case kind == domain.Invalid:
		return "", body, &domain.ContentFailure{Reason: "foreign-content", Text: err.Error()}, nil
	case kind == domain.NotFound:
		return "", body, &domain.ContentFailure{Reason: "missing-content", Text: err.Error()}, nil
	case err != nil:
		return "", body, nil, fmt.Errorf("fetch the content of bundle %s: %w", i.bundle.ID, err)
	}
	defer func() { _ = left.Close() }() // the object was only read, so closing it cannot lose data
	object = objectName(i.folder, i.bundle.ID)
	m := &contentReader{from: left, limit: h.opts.MaxContent, sum: sha256.New()}
	err = h.content.Put(ctx, object, m)
	switch {
	case errors.Is(m.err, errTooLong):
		return "", body, &domain.ContentFailure{Reason: "content-too-long", Text: fmt.Sprintf("want at most %d bytes", h.opts.MaxContent)}, nil
	case domain.KindOf(m.err) == domain.Damaged:
		return "", body, &domain.ContentFailure{Reason: "content-changed", Text: "it was replaced while it was read"}, nil
	case errors.Is(m.err, errEmpty):
		return "", body, &domain.ContentFailure{Reason: "empty-content"}, nil
	case err != nil:
		return "", body, nil, fmt.Errorf("store the content of bundle %s: %w", i.bundle.ID, err)
	}
	return object, domain.Body{Length: m.length, Digest: digestOf(m.sum)}, nil, nil
}

var (
	errTooLong = errors.New("the content is too long")
	errEmpty   = errors.New("the content is empty")
)

// A contentReader computes the length and digest of the content that it reads. It fails if the content is not
// acceptable.
type contentReader struct {
	from   io.Reader
	limit  int64
	length int64
	sum    hash.Hash
	err    error // error of an earlier Read, except io.EOF
}

func (m *contentReader) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	m.length += int64(n)
	m.sum.Write(p[:n])
	switch {
	case m.length > m.limit:
		m.err = errTooLong
	case err != nil && !errors.Is(err, io.EOF):
		m.err = err
	case err != nil && m.length == 0:
		m.err = errEmpty
	default:
		return n, err
	}
	return 0, m.err
}
