package hub_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

func TestStoredBody_CanBeReadFromAnyOffset(t *testing.T) {
	w, d := newContentWorld(t)
	content := strings.Repeat("0123456789", 10_000)
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, content)
	}
	w.sendNew(1, charges)
	peeked := w.peekBundle()
	require.EqualValues(t, len(content), peeked.Body.Length)
	body, err := peeked.Open(w.ctx)
	require.NoError(t, err)
	for _, at := range []int64{99_990, 0, 50_005, 100_000} {
		_, err := body.Seek(at, io.SeekStart)
		require.NoError(t, err)
		rest, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, content[at:], string(rest))
	}
	require.NoError(t, body.Close())
	found, err := w.hub.Bundle(w.ctx, hub.PeekRequest{Actor: w.actor, BundleID: peeked.ID})
	require.NoError(t, err)
	require.Equal(t, content, w.body(found))
}

// countedContent counts how often objects are opened.
type countedContent struct {
	repository.Content
	opened int
}

func (c *countedContent) Open(ctx context.Context, at repository.Section) (io.ReadCloser, error) {
	c.opened++
	return c.Content.Open(ctx, at)
}

func TestSeek_SkipsShortGapsOfRequestedContent(t *testing.T) {
	w, d := newContentWorld(t)
	content := strings.Repeat("0123456789", 100_000)
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, content)
	}
	counted := &countedContent{Content: w.store}
	h := hub.New(w.store, w.store, counted, hub.Options{
		Content:   map[domain.Origin]domain.ContentMode{domain.Charges: domain.Request},
		Requester: d, Exchange: d.exchange, Answers: w.store,
	})
	defer h.Close()
	w.sendNew(1, charges)
	peeked, err := h.Peek(w.ctx, w.newRequest())
	require.NoError(t, err)
	for step, want := range map[int64]int{50_000: 1, 250_000: 4} {
		counted.opened = 0
		body, err := peeked.Open(w.ctx)
		require.NoError(t, err)
		for at := int64(0); at < int64(len(content)); at += step {
			require.Equal(t, "0123456789", w.readFrom(body, at, 10))
		}
		require.Equal(t, want, counted.opened)
		rest, err := io.ReadAll(body) // the digest covers the skipped bytes, too
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(content, string(rest)))
		require.NoError(t, body.Close())
	}
}

// alteredContent is a content store that returns different bytes than were stored.
type alteredContent struct{ repository.Content }

func (s alteredContent) Open(ctx context.Context, at repository.Section) (io.ReadCloser, error) {
	r, err := s.Content.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	b[0] ^= 1
	return io.NopCloser(bytes.NewReader(b)), nil
}

func TestStoredBody_FailsIfABitHasFlipped(t *testing.T) {
	w, d := newContentWorld(t)
	h := hub.New(w.store, w.store, alteredContent{w.store}, hub.Options{
		Content:   map[domain.Origin]domain.ContentMode{domain.Charges: domain.Request},
		Requester: d, Exchange: d.exchange, Answers: w.store,
	})
	defer h.Close()
	w.sendNew(1, charges)
	peeked, err := h.Peek(w.ctx, w.newRequest())
	require.NoError(t, err)
	body, err := peeked.Open(w.ctx)
	require.NoError(t, err)
	_, err = io.ReadAll(body)
	require.Equal(t, domain.Damaged, domain.KindOf(err))
	require.Equal(t, domain.Damaged, domain.KindOf(body.Err()))
	require.NoError(t, body.Close())
}
