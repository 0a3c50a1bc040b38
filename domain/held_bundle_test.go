package domain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// A delivery fails while a node collects candidates for a bundle. The node has read it as open and
// also reads it as a retry. The bundle contains it once.
func TestABundle_HasADeliveryOnce(t *testing.T) {
	c := newCursorTest(t, 1)
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	at := domain.Position{}
	peek := &domain.ReplayRequest{ID: "bundle", Number: 1, Peek: &domain.PeekRequest{Limit: 5, Entries: []domain.Position{at, at}}}
	require.True(t, c.ApplyReplayRequest(peek, nil, c.now))
	c.storeChanges()
	require.Equal(t, &domain.HeldBundle{ID: "bundle", Retries: []domain.Position{at}}, c.standing.Held)
	require.True(t, c.ApplyReplayRequest(&domain.ReplayRequest{ID: "dequeue", Number: 2, Dequeue: "bundle"}, nil, c.now))
	c.storeChanges()
	require.EqualValues(t, 1, c.standing.Counters.Delivered)
}
