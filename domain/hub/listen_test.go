package hub_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A watermarkCounter is a store that counts the reads of the watermark.
type watermarkCounter struct {
	*memory.Store
	looks     int
	watermark func() (domain.Sequence, error)
}

func (e *watermarkCounter) Watermark(ctx context.Context, actor domain.ActorID) (domain.Sequence, error) {
	e.looks++
	if e.watermark != nil {
		return e.watermark()
	}
	return e.Store.Watermark(ctx, actor)
}

// inListenWorld runs a test in a synctest bubble, with a hub whose Listeners look every second.
func inListenWorld(t *testing.T, test func(t *testing.T, w *world, e *watermarkCounter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &watermarkCounter{Store: memory.New(memory.Options{})}
		opts := hub.Options{Listeners: 3, ListenersPerActor: 2, LookAgain: func(int) time.Duration { return time.Second }}
		test(t, &world{t, t.Context(), e.Store, hub.New(e, e, e, opts), rt.NewActor()}, e)
	})
}

// newListener returns a Listener, and closes it at the end of the test.
func (w *world) newListener(groups ...domain.Group) *hub.Listener {
	w.Helper()
	l := w.hub.Listen(w.actor, groups)
	require.NoError(w, l.TakePlace(true))
	return l
}

// awaitWake waits for l at most for limit, and returns how long it took.
func (w *world) awaitWake(l *hub.Listener, limit time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	start := time.Now()
	err := l.Wait(ctx)
	return time.Since(start), err
}

func TestListener_WakesImmediatelyForASaveOnItsNode(t *testing.T) {
	for _, groups := range [][]domain.Group{nil, {rt.TimeSeries}, {rt.MasterData, rt.TimeSeries}} {
		inListenWorld(t, func(t *testing.T, w *world, e *watermarkCounter) {
			l := w.newListener(groups...)
			defer l.Close()
			go func() {
				<-time.After(500 * time.Millisecond)
				_, err := w.hub.Ingest(w.ctx, rt.Events(3, w.actor))
				assert.NoError(t, err)
			}()
			after, err := w.awaitWake(l, time.Minute)
			require.NoError(t, err)
			require.Equal(t, 500*time.Millisecond, after)
			require.Zero(t, e.looks, "the store is not asked")
		})
	}
}

func TestListener_WakesForASaveBeforeItsWait(t *testing.T) {
	inListenWorld(t, func(t *testing.T, w *world, _ *watermarkCounter) {
		l := w.newListener()
		defer l.Close()
		w.requireNoData()
		w.sendNew(1)
		w.sendNew(1)
		after, err := w.awaitWake(l, time.Minute)
		require.NoError(t, err)
		require.Zero(t, after)
	})
}

func TestListener_IgnoresOtherActorsAndGroups(t *testing.T) {
	inListenWorld(t, func(t *testing.T, w *world, _ *watermarkCounter) {
		l := w.newListener(rt.TimeSeries)
		defer l.Close()
		_, err := w.awaitWake(l, 1500*time.Millisecond) // after a second, the Listener reads the watermark
		require.NoError(t, err)
		w.sendNew(1, rt.WithOrigin(domain.Charges))
		w.sendEvents(rt.Events(1, rt.NewActor())...)
		after, err := w.awaitWake(l, 1500*time.Millisecond)
		require.NoError(t, err, "the watermark has moved")
		require.Equal(t, time.Second, after)
		after, err = w.awaitWake(l, 1500*time.Millisecond)
		require.NoError(t, err, "news are told again")
		require.Equal(t, time.Second, after)
		_, err = w.awaitWake(l, 10*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// The Peek after a notification may read from a stale replica. Therefore the Listener must notify again at its next
// look.
func TestListener_NotifiesAgainAtTheNextLook(t *testing.T) {
	news := map[string]func(*testing.T, *world){
		"saved on this node": func(_ *testing.T, w *world) { w.sendNew(1) },
		"saved on another": func(t *testing.T, w *world) {
			_, err := w.store.Save(w.ctx, w.actor, rt.Events(1, w.actor))
			require.NoError(t, err)
		},
	}
	for name, come := range news {
		t.Run(name, func(t *testing.T) {
			inListenWorld(t, func(t *testing.T, w *world, _ *watermarkCounter) {
				l := w.newListener()
				defer l.Close()
				_, err := w.awaitWake(l, time.Minute) // the Listener reads the watermark once
				require.NoError(t, err)
				come(t, w)
				_, err = w.awaitWake(l, time.Minute)
				require.NoError(t, err)
				after, err := w.awaitWake(l, time.Minute)
				require.NoError(t, err)
				require.Equal(t, time.Second, after)
			})
		})
	}
}

func TestListener_IgnoresDuplicates(t *testing.T) {
	inListenWorld(t, func(t *testing.T, w *world, _ *watermarkCounter) {
		events := w.sendNew(2)
		w.dequeueBundle(w.peekBundle())
		l := w.newListener()
		defer l.Close()
		again, err := w.hub.Ingest(w.ctx, events)
		require.NoError(t, err)
		require.Equal(t, hub.IngestResult{Duplicates: 2}, again)
		after, err := w.awaitWake(l, 10*time.Second)
		require.NoError(t, err)
		require.Equal(t, time.Second, after, "it is the first look, not the duplicates")
	})
}

func TestListener_ReadsOnlyTheWatermarkAndSeldom(t *testing.T) {
	inListenWorld(t, func(t *testing.T, w *world, e *watermarkCounter) {
		l := w.newListener()
		defer l.Close()
		_, err := w.awaitWake(l, time.Minute)
		require.NoError(t, err)
		require.Equal(t, 1, e.looks)
		_, err = w.awaitWake(l, 10*time.Second+time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 11, e.looks)
	})
}

func TestListener_WakesIfTheStoreFails(t *testing.T) {
	inListenWorld(t, func(t *testing.T, w *world, e *watermarkCounter) {
		l := w.newListener()
		defer l.Close()
		e.watermark = func() (domain.Sequence, error) { return 0, errors.New("out of reach") }
		after, err := w.awaitWake(l, time.Minute)
		require.NoError(t, err, "the Peek that follows tells what is wrong")
		require.Equal(t, time.Second, after)
	})
}

func TestListener_WakesAfterAnUncertainSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, hub.Options{})
		w.replaceCalls(replacedStore{save: func(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error) {
			_, err := w.store.Save(ctx, to, events)
			return repository.Saved{}, errors.Join(err, domain.Errorf(domain.Uncertain, "the reply was lost"))
		}}, hub.Options{})
		l := w.newListener()
		defer l.Close()
		_, err := w.hub.Ingest(w.ctx, rt.Events(1, w.actor))
		require.Error(t, err)
		after, err := w.awaitWake(l, time.Minute)
		require.NoError(t, err)
		require.Zero(t, after)
	})
}

func TestListener_PausesGrowAndVary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &watermarkCounter{Store: memory.New(memory.Options{})}
		w := &world{t, t.Context(), e.Store, hub.New(e, e, e, hub.Options{}), rt.NewActor()}
		first := make(map[time.Duration]bool)
		for range 20 {
			e.looks = 0
			l := w.newListener()
			after, err := w.awaitWake(l, time.Minute)
			require.NoError(t, err)
			require.InDelta(t, 2, after.Seconds(), 0.5)
			first[after] = true
			_, err = w.awaitWake(l, time.Minute-after)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.GreaterOrEqual(t, e.looks, 6, "in a minute")
			require.LessOrEqual(t, e.looks, 10, "in a minute")
			l.Close()
		}
		require.Greater(t, len(first), 1)
	})
}

func TestListener_PlacesAreLimitedAndReleasedOnce(t *testing.T) {
	inListenWorld(t, func(t *testing.T, w *world, _ *watermarkCounter) {
		place := func(actor domain.ActorID) error {
			l := w.hub.Listen(actor, nil)
			defer l.Close()
			return l.TakePlace(true)
		}
		for range 3 {
			one, two := w.newListener(), w.newListener()
			err := place(w.actor)
			require.Equal(t, domain.Busy, domain.KindOf(err))
			require.ErrorContains(t, err, fmt.Sprintf("2 Peeks of actor %s", w.actor))
			third := w.hub.Listen(rt.NewActor(), nil)
			require.NoError(t, third.TakePlace(true))
			require.Equal(t, domain.Busy, domain.KindOf(place(rt.NewActor())))
			one.Close()
			one.Close()
			fourth := w.hub.Listen(rt.NewActor(), nil)
			require.NoError(t, fourth.TakePlace(true))
			require.Equal(t, domain.Busy, domain.KindOf(place(rt.NewActor())))
			for _, l := range []*hub.Listener{two, third, fourth} {
				l.Close()
			}
		}
	})
}

func TestListener_ActorsWithoutMailboxHaveATenthOfThePlaces(t *testing.T) {
	w := newWorld(t, hub.Options{Listeners: 20})
	listen := func(hasMailbox bool) (*hub.Listener, error) {
		l := w.hub.Listen(rt.NewActor(), nil)
		t.Cleanup(l.Close)
		return l, l.TakePlace(hasMailbox)
	}
	first, err := listen(false)
	require.NoError(t, err)
	_, err = listen(false)
	require.NoError(t, err)
	_, err = listen(false)
	require.Equal(t, domain.Busy, domain.KindOf(err))
	require.ErrorContains(t, err, "actors that never had data")

	require.NoError(t, first.TakePlace(true), "something was saved for it")
	require.NoError(t, first.TakePlace(false), "by a stale read")
	_, err = listen(false)
	require.NoError(t, err)
	for range 17 {
		_, err = listen(true)
		require.NoError(t, err)
	}
	_, err = listen(true)
	require.Equal(t, domain.Busy, domain.KindOf(err))
}

// awaitNotify waits up to limit for a notification. It returns whether one arrived, and how long it took.
func (w *world) awaitNotify(l *hub.Listener, limit time.Duration) (time.Duration, bool) {
	start, news := time.Now(), make(chan struct{})
	l.Notify(w.ctx, func() { close(news) })
	defer l.StopNotify()
	select {
	case <-news:
		return time.Since(start), true
	case <-time.After(limit):
		return 0, false
	}
}

func TestNotify_ReportsWhatWaitReports(t *testing.T) {
	inListenWorld(t, func(t *testing.T, w *world, e *watermarkCounter) {
		l := w.newListener()
		defer l.Close()
		after, ok := w.awaitNotify(l, time.Minute)
		require.True(t, ok, "the first look has nothing to compare with")
		require.Equal(t, time.Second, after)

		_, ok = w.awaitNotify(l, 5500*time.Millisecond)
		require.False(t, ok)
		require.Equal(t, 6, e.looks, "it looks on while there is nothing")

		go func() {
			<-time.After(500 * time.Millisecond)
			_, err := w.hub.Ingest(w.ctx, rt.Events(1, w.actor))
			assert.NoError(t, err)
		}()
		after, ok = w.awaitNotify(l, time.Minute)
		require.True(t, ok)
		require.Equal(t, 500*time.Millisecond, after)

		w.sendNew(1) // save an event between two waits
		after, ok = w.awaitNotify(l, time.Minute)
		require.True(t, ok)
		require.Zero(t, after)

		e.watermark = func() (domain.Sequence, error) { return 0, errors.New("out of reach") }
		after, ok = w.awaitNotify(l, time.Minute)
		require.True(t, ok, "the Peek that follows returns the error")
		require.Equal(t, time.Second, after)
	})
}

func TestStopNotify_PreventsTheCall(t *testing.T) {
	inListenWorld(t, func(t *testing.T, w *world, e *watermarkCounter) {
		l := w.newListener()
		l.Notify(w.ctx, func() { t.Error("notified") })
		l.StopNotify()
		w.sendNew(1)
		l.Close()
		<-time.After(10 * time.Second)
		require.Zero(t, e.looks)
		w.hub.Close()
	})
}
