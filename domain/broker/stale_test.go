package broker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// staleStreams simulates stale reads: they omit the last hidden entries. A page has two entries.
type staleStreams struct {
	repository.Streams
	hidden *atomic.Int64
}

func (s staleStreams) Read(ctx context.Context, stream domain.StreamName, from domain.Position, limit int) (repository.Entries, error) {
	end, err := s.CurrentEnd(ctx, stream)
	if err != nil {
		return repository.Entries{}, err
	}
	visible := int64(0)
	for _, p := range end.Positions {
		if p.Priority == from.Priority {
			visible = p.Number - s.hidden.Load()
		}
	}
	if from.Number >= visible {
		return repository.Entries{Start: from}, nil
	}
	return s.Streams.Read(ctx, stream, from, min(limit, 2, int(visible-from.Number)))
}

func (s staleStreams) End(ctx context.Context, stream domain.StreamName) (repository.StreamEnd, error) {
	end, err := s.CurrentEnd(ctx, stream)
	for i := range end.Positions {
		end.Positions[i].Number = max(end.Positions[i].Number-s.hidden.Load(), 0)
	}
	return end, err
}

// hideEntries makes reads of the world stale. The test sets the returned number of hidden entries.
func (w *fetchWorld) hideEntries() *atomic.Int64 {
	hidden := new(atomic.Int64)
	w.ports.Streams = staleStreams{w.ports.Streams, hidden}
	return hidden
}

func TestABundle_HasTheMessagesOfAllPages(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.hideEntries()
		w.status = 500
		n := w.startNode("a", delivery.Options{})
		w.awaitSharing()
		w.broadcast(n, 7, 0)
		<-time.After(10 * time.Second) // by now, every delivery is a retry or a dead letter
		require.Len(w, w.peekBundle(n, 7).Messages, 7)
	})
}

func TestABundleWithHiddenMessages_IsNotReturned(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		hidden := w.hideEntries()
		w.status = 500
		n := w.startNode("a", delivery.Options{})
		w.awaitSharing()
		w.broadcast(n, 4, 0)
		<-time.After(10 * time.Second)
		bundle := w.peekBundle(n, 4)
		hidden.Store(1)
		_, err := n.Peek(w.Context(), consumerCredentials, w.consumer, 4, nil)
		require.Equal(w, domain.Unavailable, domain.KindOf(err))
		require.ErrorContains(w, err, "not visible")
		hidden.Store(0)
		require.Equal(w, bundle, w.peekBundle(n, 4))
	})
}

func TestAMessageThatWasAccepted_IsFoundOrNotVisibleYet(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		hidden := w.hideEntries()
		n := w.startNode("a", delivery.Options{})
		w.broadcast(n, 3, 0)
		_, _, err := n.Broadcast(w.Context(), producerCredentials, w.channel, &broker.Broadcast{ID: "mine"})
		require.NoError(w, err)
		hidden.Store(2)
		for id, want := range map[string]domain.Kind{
			"m0.1": domain.Unknown, "m0.2": domain.Unavailable, "mine": domain.Unavailable, "m0.4": domain.NotFound, "m7.0": domain.NotFound, "other": domain.NotFound,
		} {
			_, err := n.Message(w.Context(), adminCredentials, w.channel, id, nil)
			require.Equal(w, want, domain.KindOf(err), id)
		}
		hidden.Store(0)
		m, err := n.Message(w.Context(), adminCredentials, w.channel, "mine", nil)
		require.NoError(w, err)
		require.Equal(w, "m0.3", m.ID)
	})
}

func TestAConsumer_BeginsAfterExistingMessages(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		hidden := w.hideEntries()
		n := w.startNode("a", delivery.Options{})
		w.broadcast(n, 3, 0)
		hidden.Store(2)
		late, err := w.channel.Consumers().Parse("late")
		require.NoError(w, err)
		_, _, err = n.PutParty(w.Context(), adminCredentials, late, broker.Draft{Token: new("t"), CallbackURL: "https://late.example/"}, broker.Condition{})
		require.NoError(w, err)
		s, err := w.ports.Cursors.Standing(w.Context(), late.Cursor())
		require.NoError(w, err)
		require.EqualValues(w, 3, s.Position(0).Number)
	})
}

// staleCursors returns a stale standing for one read.
type staleCursors struct {
	repository.Cursors
	old *domain.Standing
}

func (s *staleCursors) Standing(ctx context.Context, id domain.CursorID) (domain.Standing, error) {
	if old := s.old; old != nil {
		s.old = nil
		return *old, nil
	}
	return s.Cursors.Standing(ctx, id)
}

func TestPeek_ReturnsNoBundleThatWasDequeued(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status = 500
		a := w.startNode("a", delivery.Options{})
		w.awaitSharing()
		w.broadcast(a, 2, 0)
		<-time.After(time.Second)
		first := w.peekBundle(a, 1)
		old, err := w.ports.Cursors.Standing(w.Context(), w.consumer.Cursor())
		require.NoError(w, err)
		require.NotNil(w, old.Held)
		w.dequeues(a, first)
		w.ports.Cursors = &staleCursors{w.ports.Cursors, &old}
		b := w.startNode("b", delivery.Options{})
		second := w.peekBundle(b, 1)
		require.NotEqual(w, first.ID, second.ID)
		require.NotEqual(w, first.Messages[0].ID, second.Messages[0].ID)
	})
}
