package cosmos

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// readBody returns the body of a bundle, starting at offset from.
func readBody(t *testing.T, p *hub.PeekedBundle, from int64) string {
	t.Helper()
	body, err := p.Open(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, body.Close()) }()
	_, err = body.Seek(from, io.SeekStart)
	require.NoError(t, err)
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	return string(text)
}

func TestABodyIsTheSameOnEveryNode(t *testing.T) {
	s := newTrust(t)
	var hubs []*hub.Hub
	for range 2 {
		node := s.node(Options{DrawerCapacity: 100}, false)
		hubs = append(hubs, hub.New(node, node, s.content, hub.Options{}))
	}
	for range 5 {
		_, err := hubs[0].Ingest(context.Background(), repositorytest.Events(50, s.actor, repositorytest.WithPayload(`{"kwh":[1.5,1.25]}`)))
		require.NoError(t, err)
	}
	first, err := hubs[0].Peek(context.Background(), hub.PeekRequest{Actor: s.actor})
	require.NoError(t, err)
	require.Equal(t, 250, first.Count)
	whole := readBody(t, first, 0)
	require.Equal(t, first.Body.Length, int64(len(whole)))
	for i, h := range hubs {
		again, err := h.Peek(context.Background(), hub.PeekRequest{Actor: s.actor})
		require.NoError(t, err)
		require.Equal(t, first.Body, again.Body, "node %d", i)
		require.Equal(t, whole, readBody(t, again, 0), "node %d", i)

		before := s.engine.Requests()
		found, err := h.Bundle(context.Background(), hub.PeekRequest{Actor: s.actor, BundleID: first.ID})
		require.NoError(t, err)
		require.Equal(t, first.Body, found.Body, "node %d", i)
		assert.Equal(t, int64(3), s.engine.Requests()-before, "the gates, the head and the bundle; its length and its digest cost nothing")
		for _, from := range []int64{0, 1, 10_000, first.Body.Length - 1, first.Body.Length} {
			require.Equal(t, whole[from:], readBody(t, found, from), "node %d from %d", i, from)
		}
	}
}

func TestABundleOfAnOlderVersionHasABody(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	h := hub.New(node, node, s.content, hub.Options{})
	s.save(node, 0, repositorytest.Events(3, s.actor))
	old, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	require.Zero(t, old.Body)
	peeked, err := h.Peek(context.Background(), hub.PeekRequest{Actor: s.actor})
	require.NoError(t, err)
	require.Zero(t, peeked.Body)
	whole := readBody(t, peeked, 0)
	require.Equal(t, peeked.Body.Length, int64(len(whole)))
	require.NotZero(t, peeked.Body.Digest)
	require.Equal(t, whole[100:], readBody(t, peeked, 100))
}

func TestADigestOfAnotherSizeIsDamaged(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	s.save(node, 0, repositorytest.Events(1, s.actor))
	peeked, err := hub.New(node, node, s.content, hub.Options{}).Peek(context.Background(), hub.PeekRequest{Actor: s.actor})
	require.NoError(t, err)

	c := node.beginCall("test")
	var doc bundleDoc
	etag, err := c.Read(context.Background(), node.db.bundles, s.actor.String(), peeked.ID.String(), &doc)
	require.NoError(t, err)
	for _, n := range []int{15, 17} {
		doc.BodyDigest = make([]byte, n)
		etag, err = c.Put(context.Background(), node.db.bundles, s.actor.String(), doc.ID, etag, &doc)
		require.NoError(t, err)
		_, _, err = node.Find(context.Background(), s.actor, peeked.ID)
		require.Equal(t, domain.Damaged, domain.KindOf(err))
	}
}
