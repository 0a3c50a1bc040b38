package subscribe_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

// A failingRequests is a store that cannot withdraw requests.
type failingRequests struct{ repository.DequeueRequests }

func (failingRequests) WithdrawDequeues(context.Context, domain.ActorID, domain.SubscriptionID) error {
	return domain.Errorf(domain.Unavailable, "the store is not reachable")
}

// isRequested reports whether the owner's dequeues are requested for a subscription. It does not
// change the requests.
func (w *world) isRequested(t *testing.T, id domain.SubscriptionID) bool {
	t.Helper()
	added, err := w.store.RequestDequeues(t.Context(), w.owner, id)
	require.NoError(t, err)
	if added {
		require.NoError(t, w.store.WithdrawDequeues(t.Context(), w.owner, id))
	}
	return !added
}

func TestDequeues_AreRequestedWhileASubscriptionExists(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	other, err := w.Create(t.Context(), w.draft())
	require.NoError(t, err)
	require.False(t, w.isRequested(t, other.ID))
	d := w.draft()
	d.Topic = domain.DequeuedTopic
	s, err := w.Create(t.Context(), d)
	require.NoError(t, err)
	require.True(t, w.isRequested(t, s.ID))

	// If a failover of the database account loses the request, the owner or the serving node
	// requests the dequeues again.
	require.NoError(t, w.store.WithdrawDequeues(t.Context(), w.owner, s.ID))
	_, _, err = w.Put(t.Context(), s.ID, d, subscribe.Match{})
	require.NoError(t, err)
	require.True(t, w.isRequested(t, s.ID))

	_, err = w.Delete(t.Context(), w.owner, s.ID, subscribe.Match{})
	require.NoError(t, err)
	require.False(t, w.isRequested(t, s.ID))
}

func TestAnInterruptedDeletion_IsCompletedWhenItIsRepeated(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	d := w.draft()
	d.Topic = domain.DequeuedTopic
	s, err := w.Create(t.Context(), d)
	require.NoError(t, err)
	broken := subscribe.New(subscribe.Ports{Definitions: w.definitions, Streams: w.streams, Cursors: w.cursors, Dequeues: failingRequests{w.store}}, w.keys, subscribe.Options{})
	_, err = broken.Delete(t.Context(), w.owner, s.ID, subscribe.Match{})
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	_, err = w.Delete(t.Context(), w.owner, s.ID, subscribe.Match{})
	require.Equal(t, domain.NotFound, domain.KindOf(err))
	require.False(t, w.isRequested(t, s.ID))
}

// If a subscription is deleted just before a node requests the Dequeues of its owner, the node withdraws the request.
func TestARequestOfADeletedSubscription_IsWithdrawn(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	d := w.draft()
	d.Topic = domain.DequeuedTopic
	s, err := w.Create(t.Context(), d)
	require.NoError(t, err)
	found, err := w.definitions.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	_, err = w.Delete(t.Context(), w.owner, s.ID, subscribe.Match{})
	require.NoError(t, err)
	late := subscribe.Dequeues{Requests: w.store, Definitions: w.definitions}
	require.Equal(t, domain.NotFound, domain.KindOf(late.Request(t.Context(), found)))
	require.False(t, w.isRequested(t, s.ID))
}
