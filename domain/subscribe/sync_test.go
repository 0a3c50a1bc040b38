package subscribe_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// An unlistableStreams cannot add cursors to the sync list of a stream.
type unlistableStreams struct{ repository.Streams }

func (unlistableStreams) AddSync(context.Context, domain.StreamName, domain.CursorID) error {
	return domain.Errorf(domain.Unavailable, "the store is not reachable")
}

// listSync returns the cursors on the default topic's sync list.
func (w *world) listSync(t *testing.T) []domain.CursorID {
	t.Helper()
	topic, err := domain.ParseTopic(domain.DefaultTopic)
	require.NoError(t, err)
	listed, err := w.streams.Sync(t.Context(), topic)
	require.NoError(t, err)
	return listed
}

func TestASyncSubscription_IsListedWhileItIsSync(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	id := repositorytest.NewDefinition(w.owner).ID
	d := w.draft()
	put := func(isSync bool) {
		t.Helper()
		d.IsSync = isSync
		_, _, err := w.Put(t.Context(), id, d, subscribe.Match{})
		require.NoError(t, err)
	}
	put(false)
	require.Empty(t, w.listSync(t))
	put(true)
	put(true)
	require.Equal(t, []domain.CursorID{id.Cursor()}, w.listSync(t))
	put(false)
	require.Empty(t, w.listSync(t))
	put(true)
	_, err := w.Delete(t.Context(), w.owner, id, subscribe.Match{})
	require.NoError(t, err)
	require.Empty(t, w.listSync(t))
}

// After a crash or a failure, the sync list may lack a subscription's cursor. A repeated Put adds
// it.
func TestASyncSubscription_IsListedByARepeatedPut(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	id := repositorytest.NewDefinition(w.owner).ID
	d := w.draft()
	d.IsSync = true
	broken := subscribe.New(subscribe.Ports{Definitions: w.definitions, Streams: unlistableStreams{w.streams}, Cursors: w.cursors, Dequeues: w.store}, w.keys, subscribe.Options{})
	_, _, err := broken.Put(t.Context(), id, d, subscribe.Match{})
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	require.Empty(t, w.listSync(t))
	_, _, err = w.Put(t.Context(), id, d, subscribe.Match{})
	require.NoError(t, err)
	require.Equal(t, []domain.CursorID{id.Cursor()}, w.listSync(t))
}

func TestATopic_LimitsItsSyncSubscriptions(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	d := w.draft()
	d.IsSync = true
	first, err := w.Create(t.Context(), d)
	require.NoError(t, err)
	for range domain.MaxSync - 1 {
		_, err := w.Create(t.Context(), d)
		require.NoError(t, err)
	}
	_, err = w.Create(t.Context(), d)
	require.Equal(t, domain.Invalid, domain.KindOf(err))
	require.ErrorContains(t, err, "/delivery: ")
	all, err := w.List(t.Context(), w.owner)
	require.NoError(t, err)
	require.Len(t, all, domain.MaxSync, "nothing was stored")
	d.Method = "PUT"
	_, _, err = w.Put(t.Context(), first.ID, d, subscribe.Match{})
	require.NoError(t, err, "it is one of them")
	d.Topic = "another"
	_, err = w.Create(t.Context(), d)
	require.NoError(t, err)
	d.Topic = domain.DequeuedTopic
	_, err = w.Create(t.Context(), d)
	require.ErrorContains(t, err, "/delivery: want async")
}
