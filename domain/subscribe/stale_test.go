package subscribe_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

// A staleDefinitions returns an old definition from every read that may be stale.
type staleDefinitions struct {
	repository.Definitions
	old *repository.Definition
}

func (s staleDefinitions) Subscription(context.Context, domain.SubscriptionID) (*repository.Definition, error) {
	return s.old.Clone(), nil
}

// A pause, a rotation or a conditional PUT changes nothing if the subscription already has the
// requested state. It then writes nothing, so it must not rely on a stale read.
func TestAChangeThatIsAlreadyMade_IsFoundWithoutAStaleRead(t *testing.T) {
	w := newWorld(t, subscribe.Options{})
	s, err := w.Create(t.Context(), w.draft())
	require.NoError(t, err)
	_, err = w.SetPaused(t.Context(), w.owner, s.ID, true)
	require.NoError(t, err)
	old, err := w.definitions.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	stale := subscribe.New(subscribe.Ports{Definitions: staleDefinitions{w.definitions, old}, Streams: w.streams, Cursors: w.cursors, Dequeues: w.store}, w.keys, subscribe.Options{})

	_, err = w.SetPaused(t.Context(), w.owner, s.ID, false)
	require.NoError(t, err)
	_, err = stale.SetPaused(t.Context(), w.owner, s.ID, true)
	require.NoError(t, err)
	got, err := w.Get(t.Context(), w.owner, s.ID)
	require.NoError(t, err)
	require.True(t, got.IsPaused)

	first, second := secret, "another very secret secret"
	_, _, err = w.Rotate(t.Context(), w.owner, s.ID, &second, subscribe.Match{})
	require.NoError(t, err)
	_, _, err = stale.Rotate(t.Context(), w.owner, s.ID, &first, subscribe.Match{})
	require.NoError(t, err)
	d, err := w.definitions.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	current, err := w.keys.Open(s.ID, w.owner, d.Secret)
	require.NoError(t, err)
	require.Equal(t, first, current)

	draft := w.draft()
	draft.CallbackURL = "https://example.org/other"
	_, _, err = w.Put(t.Context(), s.ID, draft, subscribe.Match{})
	require.NoError(t, err)
	_, _, err = stale.Put(t.Context(), s.ID, w.draft(), subscribe.Match{Exists: true})
	require.NoError(t, err)
	got, err = w.Get(t.Context(), w.owner, s.ID)
	require.NoError(t, err)
	require.Equal(t, w.draft().CallbackURL, got.CallbackURL)

	_, err = w.Delete(t.Context(), w.owner, s.ID, subscribe.Match{})
	require.NoError(t, err)
	_, _, err = stale.Put(t.Context(), s.ID, w.draft(), subscribe.Match{Exists: true})
	require.ErrorIs(t, err, subscribe.ErrChanged)
	_, err = stale.SetPaused(t.Context(), w.owner, s.ID, true)
	require.Equal(t, domain.NotFound, domain.KindOf(err))
}
