package hub_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// requirePeekError checks that a Peek returns the error failure, although events wait.
func (w *world) requirePeekError(failure error) {
	w.Helper()
	_, err := w.hub.Peek(w.ctx, w.newRequest())
	require.ErrorIs(w, err, failure)
	require.Equal(w, domain.KindOf(failure).String(), domain.KindOf(err).String())
	require.NotErrorIs(w, err, domain.ErrNoData)
}

func TestPeek_ReturnsTheErrorOfTheStore(t *testing.T) {
	for _, kind := range kinds {
		failure := domain.Errorf(kind, "no luck")
		t.Run(kind.String()+" when asked for what comes next", func(t *testing.T) {
			w := newWorld(t, hub.Options{})
			w.sendNew(1)
			w.replaceCalls(replacedStore{next: func(context.Context, domain.ActorID, []domain.Group) (repository.Next, error) {
				return repository.Next{}, failure
			}}, hub.Options{})
			w.requirePeekError(failure)
		})
	}
	for _, kind := range kindsExcept(domain.Conflict) {
		failure := domain.Errorf(kind, "no luck")
		t.Run(kind.String()+" when told to open a bundle", func(t *testing.T) {
			w := newWorld(t, hub.Options{})
			w.sendNew(1)
			w.replaceCalls(replacedStore{add: func(context.Context, domain.Bundle, repository.Run) (domain.Bundle, error) {
				return domain.Bundle{}, failure
			}}, hub.Options{})
			w.requirePeekError(failure)
		})
		for after := range 3 {
			t.Run(kind.String()+" when read", func(t *testing.T) {
				w := newWorld(t, hub.Options{})
				w.sendNew(3)
				w.breakRuns(after, failure)
				w.requirePeekError(failure)
				require.Equal(t, 3, w.newOtherNode().peekBundle().Count, "and opens nothing")
			})
		}
	}
}

// breakRuns makes every read of a run fail after some events.
func (w *world) breakRuns(after int, failure error) {
	w.replaceCalls(replacedStore{next: func(ctx context.Context, actor domain.ActorID, groups []domain.Group) (repository.Next, error) {
		next, err := w.store.NextUnacknowledged(ctx, actor, groups)
		if err == nil {
			next.Run = brokenRun{next.Run, after, failure}
		}
		return next, err
	}}, hub.Options{})
}

func TestPeek_RestartsIfAnotherPeekTakesItsEvents(t *testing.T) {
	w := newWorld(t, hub.Options{})
	events := w.sendNew(3)
	looks := 0
	w.replaceCalls(replacedStore{next: func(ctx context.Context, actor domain.ActorID, groups []domain.Group) (repository.Next, error) {
		looks++
		next, err := w.store.NextUnacknowledged(ctx, actor, groups)
		if looks == 1 {
			next.Run = brokenRun{next.Run, 1, domain.Errorf(domain.Conflict, "moved on")}
		}
		return next, err
	}}, hub.Options{})
	w.requireEvents(w.peekBundle(), events...)
	require.Equal(t, 2, looks)
}

func TestPeek_CanBeRepeatedAfterAnUncertainFailure(t *testing.T) {
	for name, id := range map[string]domain.BundleID{"without an id": {}, "under an id": rt.NewBundleID()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hub.Options{})
			events := w.sendNew(2)
			lost := domain.Errorf(domain.Uncertain, "reply lost")
			w.replaceCalls(replacedStore{add: func(ctx context.Context, b domain.Bundle, run repository.Run) (domain.Bundle, error) {
				_, err := w.store.Add(ctx, b, run)
				require.NoError(t, err)
				return domain.Bundle{}, lost
			}}, hub.Options{})
			req := w.newRequest()
			req.BundleID = id
			_, err := w.hub.Peek(w.ctx, req)
			require.ErrorIs(t, err, lost)

			again, err := w.hub.Peek(w.ctx, req)
			require.NoError(t, err)
			w.requireEvents(again, events...)
		})
	}
}

func TestBody_IsIncompleteIfItsEventsCannotBeRead(t *testing.T) {
	for _, kind := range kinds {
		for after := range 3 {
			w := newWorld(t, hub.Options{})
			w.sendNew(3)
			open := w.peekBundle()
			failure := domain.Errorf(kind, "no luck")
			w.breakRuns(after, failure)
			again := w.peekBundle()
			require.Equal(t, open.Bundle, again.Bundle)
			w.requireNoBody(again, failure, kind)
		}
	}
}

func TestPeekAndDequeue_FailIfTheirContextHasEnded(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(1)
	gone, cancel := context.WithCancel(w.ctx)
	cancel()
	_, err := w.hub.Peek(gone, w.newRequest())
	require.ErrorIs(t, err, context.Canceled)
	_, err = w.hub.Dequeue(gone, w.actor, w.peekBundle().ID)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, w.peekBundle().Count)
}
