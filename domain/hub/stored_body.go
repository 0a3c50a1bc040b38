package hub

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A storedBody is a Body that a domain has produced and the hub has stored. When it is read from its beginning, it
// returns the last bytes only if the digest of the whole content is correct.
type storedBody struct {
	ctx    context.Context //nolint:containedctx // a Reader has nowhere else to get it from
	bundle *domain.Bundle
	hub    *Hub

	mu     sync.Mutex
	want   int64 // offset at which the next Read begins
	at     int64 // current offset of source
	source io.ReadCloser
	sum    hash.Hash // digest of the bytes read from source; nil unless source started at 0
	err    error     // error of an earlier Read, or errClosed
}

// Seek implements io.Seeker. It only sets the offset for the next Read.
func (r *storedBody) Seek(offset int64, whence int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return seekOffset(&r.want, r.bundle.Body.Length, offset, whence)
}

// Read implements io.Reader.
func (r *storedBody) Read(p []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if r.want >= r.bundle.Body.Length {
		return 0, io.EOF
	}
	if n, r.err = r.read(p); r.err != nil {
		r.err = fmt.Errorf("content of bundle %s: %w", r.bundle.ID, r.err)
		return 0, r.err
	}
	return n, nil
}

func (r *storedBody) read(p []byte) (int, error) {
	if err := r.seekSource(); err != nil {
		return 0, err
	}
	n, err := r.source.Read(p[:min(int64(len(p)), r.bundle.Body.Length-r.at)])
	r.at += int64(n)
	r.want = r.at
	if r.sum != nil {
		r.sum.Write(p[:n])
	}
	switch {
	case r.at == r.bundle.Body.Length:
		return n, r.verifyDigest()
	case err == nil, n > 0 && errors.Is(err, io.EOF):
		return n, nil
	}
	return 0, r.asDamaged(err)
}

// asDamaged converts an early EOF of the object to an error of kind Damaged.
func (r *storedBody) asDamaged(err error) error {
	if errors.Is(err, io.EOF) {
		return domain.Errorf(domain.Damaged, "object %s ends too early: %w", r.bundle.Object, io.ErrUnexpectedEOF)
	}
	return err
}

// seekSource moves source to the offset want.
func (r *storedBody) seekSource() error {
	gap := r.want - r.at
	switch {
	case r.source == nil || gap < 0 || gap > maxSkip:
		return r.openObject()
	case gap == 0:
		return nil
	}
	skipped := io.Discard
	if r.sum != nil {
		skipped = r.sum
	}
	n, err := io.CopyN(skipped, r.source, gap)
	r.at += n
	return r.asDamaged(err)
}

// openObject opens the object at the offset want.
func (r *storedBody) openObject() error {
	if err := r.closeObject(); err != nil {
		return err
	}
	source, err := r.hub.content.Open(r.ctx, repository.Section{Object: r.bundle.Object, Offset: r.want, Length: r.bundle.Body.Length - r.want})
	if domain.KindOf(err) == domain.NotFound { // the object was deleted, because the bundle refers to it
		return r.hub.contentMissing(r.ctx, r.bundle, err)
	}
	if err != nil {
		return err
	}
	r.source, r.at, r.sum = source, r.want, nil
	if r.at == 0 {
		r.sum = sha256.New()
	}
	return nil
}

// verifyDigest returns an error unless the digest of the whole content equals the stored one.
func (r *storedBody) verifyDigest() error {
	if r.sum != nil && digestOf(r.sum) != r.bundle.Body.Digest {
		return domain.Errorf(domain.Damaged, "object %s: its bytes differ from the stored bytes", r.bundle.Object)
	}
	return nil
}

func (r *storedBody) closeObject() error {
	if r.source == nil {
		return nil
	}
	err := r.source.Close()
	r.source = nil
	return err
}

// LimitReadAhead implements Body. It does nothing, because this body never reads ahead.
func (r *storedBody) LimitReadAhead(int64) {}

// Err implements Body.
func (r *storedBody) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close releases the resources of the body.
func (r *storedBody) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.closeObject()
	if r.err == nil {
		r.err = errClosed
	}
	return err
}

// digestOf returns the digest of everything written to sum.
func digestOf(sum hash.Hash) (d domain.Digest) {
	copy(d[:], sum.Sum(nil))
	return d
}
