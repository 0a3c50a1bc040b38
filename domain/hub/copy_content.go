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

// What hub and domain exchange lies in storage that both can write to. So the hub
// makes the content its own, byte by byte, before it relies on it: a domain that
// leaves another content under the same name later changes no bundle.

// listName is the name of the object that tells the domain the ids of a bundle's
// events. It names the events by their numbers, which are never used again, so that
// no bundle can overwrite the list of another, even if an id comes again after years.
func listName(folder string, b *domain.Bundle) string {
	return fmt.Sprintf("%s/%s_%d-%d", folder, ProcessID(b.ID, b.Cabinet.Recipient), b.First, b.Last)
}

// listed tells the name of a list from those that domains give to content.
var listed = regexp.MustCompile(`/[0-9a-fA-F-]{36}_[^/]+_[0-9]+-[0-9]+$`)

// isOwn reports whether what a domain has named is named after the bundle, so that the
// hub may remove it. Else it may be anybody's.
func (i *contentFetch) isOwn(name string) bool {
	rest, ok := strings.CutPrefix(path.Base(name), ProcessID(i.bundle.ID, i.key.actor))
	return ok && (rest == "" || rest[0] == '_' || rest[0] == '.') // or the actor has a longer id
}

// appendID appends the id of an event to a list as the original protocol has it, which
// is how .NET lays out a GUID: the first three groups of its text have their bytes in
// reverse.
func appendID(list []byte, id domain.EventID) []byte {
	return append(list, id[3], id[2], id[1], id[0], id[5], id[4], id[7], id[6],
		id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15])
}

// copyContent copies what a domain has left into the hub's own content store, where it is
// written once. It returns either what is there now, or what is wrong with what the
// domain has left, or why the hub could not look.
func (h *Hub) copyContent(ctx context.Context, i *contentFetch, uri string) (object string, body domain.Body, wrong *domain.Trouble, err error) {
	if name, err := h.opts.Exchange.Name(uri); err == nil && listed.MatchString(name) {
		return "", body, &domain.Trouble{Reason: "foreign-content", Text: "content URI: it names a list of ids, which the hub has left; name the content"}, nil
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
		return "", body, &domain.Trouble{Reason: "foreign-content", Text: err.Error()}, nil
	case kind == domain.NotFound:
		return "", body, &domain.Trouble{Reason: "missing-content", Text: err.Error()}, nil
	case err != nil:
		return "", body, nil, fmt.Errorf("fetch the content of bundle %s: %w", i.bundle.ID, err)
	}
	defer func() { _ = left.Close() }() // it was read
	object = objectName(i.folder, i.bundle.ID)
	m := &measured{from: left, most: h.opts.MaxContent, sum: sha256.New()}
	err = h.content.Put(ctx, object, m)
	switch {
	case errors.Is(m.err, errTooLong):
		return "", body, &domain.Trouble{Reason: "content-too-long", Text: fmt.Sprintf("want at most %d bytes", h.opts.MaxContent)}, nil
	case domain.KindOf(m.err) == domain.Damaged:
		return "", body, &domain.Trouble{Reason: "content-changed", Text: "it was replaced while it was read"}, nil
	case errors.Is(m.err, errEmpty):
		return "", body, &domain.Trouble{Reason: "empty-content"}, nil
	case err != nil:
		return "", body, nil, fmt.Errorf("keep the content of bundle %s: %w", i.bundle.ID, err)
	}
	return object, domain.Body{Length: m.length, Digest: digestOf(m.sum)}, nil, nil
}

var (
	errTooLong = errors.New("the content is too long")
	errEmpty   = errors.New("the content is empty")
)

// measured measures what it reads, and fails where that is not to be kept.
type measured struct {
	from   io.Reader
	most   int64
	length int64
	sum    hash.Hash
	err    error // other than io.EOF
}

func (m *measured) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	m.length += int64(n)
	m.sum.Write(p[:n])
	switch {
	case m.length > m.most:
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
