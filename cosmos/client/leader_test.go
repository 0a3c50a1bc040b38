package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// A group is a Leader whose rounds wait until the test starts them, and record the items that they take.
type group struct {
	*Leader[*int]
	limit  int // limit for the items of a round
	begin  chan struct{}
	rounds [][]*int // items of each round; only the leader writes them
	reset  int
	after  func([]*int) // called by each round with its items; nil: the round completes the items
}

func newGroup(limit int) *group {
	g := &group{limit: limit, begin: make(chan struct{})}
	g.Leader = NewLeader[*int]("write", time.Minute, func(context.Context) {
		<-g.begin
		n := 0
		items := g.Take(func(*int) bool { n++; return n <= g.limit })
		g.rounds = append(g.rounds, items)
		if g.after != nil {
			g.after(items)
			return
		}
		g.completeAll(items)
	}, func() { g.reset++ })
	return g
}

func (g *group) completeAll(items []*int) {
	for _, item := range items {
		g.Complete(item, nil)
	}
}

// start calls Do for a new item in a goroutine.
func (g *group) start(ctx context.Context) (item *int, outcome <-chan error) {
	item, done := new(int), make(chan error, 1)
	go func() { done <- g.Do(ctx, item) }()
	synctest.Wait()
	return item, done
}

func TestLeader_GroupsQueuedItemsAndHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(2)
		ctx := t.Context()
		a, aDone := g.start(ctx)
		b, bDone := g.start(ctx)
		c, cDone := g.start(ctx)
		d, dDone := g.start(ctx)
		require.Equal(t, 4, g.Queued())
		g.begin <- struct{}{}
		require.NoError(t, <-aDone, "the first leader has handed over and does not lead for others")
		require.NoError(t, <-bDone)
		synctest.Wait()
		require.Equal(t, 2, g.Queued())
		g.begin <- struct{}{}
		require.NoError(t, <-cDone)
		require.NoError(t, <-dDone)
		synctest.Wait()
		assert.Equal(t, [][]*int{{a, b}, {c, d}}, g.rounds)

		e, eDone := g.start(ctx)
		g.begin <- struct{}{}
		require.NoError(t, <-eDone, "after the last item the next caller leads")
		assert.Equal(t, []*int{e}, g.rounds[2])
		assert.Zero(t, g.reset)
	})
}

func TestLeader_HandsOverToTheOldestTakenItemFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(3)
		var kept []*int
		g.after = func(items []*int) {
			if len(kept) == 0 { // the first round completes only its first item
				kept = items[1:]
				items = items[:1]
			} else {
				items, kept = append(kept, items...), nil
			}
			g.completeAll(items)
		}
		_, a := g.start(t.Context())
		_, b := g.start(t.Context())
		_, c := g.start(t.Context())
		g.begin <- struct{}{}
		require.NoError(t, <-a)
		synctest.Wait()
		g.begin <- struct{}{} // the caller of b leads the second round
		require.NoError(t, <-b)
		require.NoError(t, <-c)
		assert.Len(t, g.rounds, 2)
	})
}

func TestLeader_ReturnsTheErrorOfEachItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(2)
		wrong := errors.New("wrong")
		g.after = func(items []*int) {
			g.Complete(items[0], nil)
			g.Complete(items[1], wrong)
		}
		_, a := g.start(t.Context())
		_, b := g.start(t.Context())
		g.begin <- struct{}{}
		assert.NoError(t, <-a)
		assert.Equal(t, wrong, <-b)
	})
}

func TestLeader_ACallerWhoseContextEndsLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(9)
		a, aDone := g.start(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		_, bDone := g.start(ctx)
		cancel()
		err := <-bDone
		assert.Equal(t, domain.Unavailable, domain.KindOf(err))
		assert.ErrorIs(t, err, context.Canceled)
		g.begin <- struct{}{}
		require.NoError(t, <-aDone)
		synctest.Wait()
		assert.Equal(t, [][]*int{{a}}, g.rounds)
	})
}

func TestLeader_ACallerWhoseItemIsTakenIsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(9)
		carryOut := make(chan struct{})
		g.after = func(items []*int) {
			<-carryOut
			g.completeAll(items)
		}
		_, a := g.start(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		_, b := g.start(ctx)
		g.begin <- struct{}{}
		synctest.Wait()
		cancel()
		assert.Equal(t, domain.Uncertain, domain.KindOf(<-b))
		close(carryOut)
		assert.NoError(t, <-a)
	})
}

func TestLeader_FinishesItemsOfCallersThatHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(9)
		var kept []*int
		g.after = func(items []*int) {
			if len(g.rounds) == 1 {
				kept = items[1:]
				<-g.begin
				g.Complete(items[0], nil)
				return
			}
			g.completeAll(kept)
		}
		_, a := g.start(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		_, b := g.start(ctx)
		g.begin <- struct{}{}
		synctest.Wait()
		cancel()
		assert.Equal(t, domain.Uncertain, domain.KindOf(<-b))
		g.begin <- struct{}{} // complete a; the caller of a continues to lead, because the context of b has ended
		g.begin <- struct{}{}
		assert.NoError(t, <-a)
		assert.Len(t, g.rounds, 2)
	})
}

func TestLeader_ACancelledLeaderCompletesItsRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(9)
		ctx, cancel := context.WithCancel(t.Context())
		_, a := g.start(ctx)
		_, b := g.start(t.Context())
		cancel()
		g.begin <- struct{}{}
		assert.NoError(t, <-a)
		assert.NoError(t, <-b)
	})
}

func TestLeader_APanicFailsEveryItemAndTheNextCallerLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(2)
		g.after = func([]*int) { panic("a bug") }
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_ = g.Do(t.Context(), new(int))
		}()
		synctest.Wait()
		_, taken := g.start(t.Context())
		_, queued := g.start(t.Context())
		g.begin <- struct{}{}
		assert.Equal(t, "a bug", <-panicked)
		for _, outcome := range []<-chan error{taken, queued} {
			err := <-outcome
			assert.Equal(t, domain.Uncertain, domain.KindOf(err))
			assert.ErrorContains(t, err, "a bug")
		}
		assert.Equal(t, 1, g.reset)
		g.after = nil
		_, next := g.start(t.Context())
		g.begin <- struct{}{}
		assert.NoError(t, <-next)
	})
}

func TestLeader_OneRoundAtATime(t *testing.T) {
	var inRound, items atomic.Int32
	var l *Leader[*int]
	l = NewLeader[*int]("write", time.Minute, func(context.Context) {
		assert.EqualValues(t, 1, inRound.Add(1))
		n := 0
		for _, item := range l.Take(func(*int) bool { n++; return n <= 3 }) {
			*item++ // no lock: only the leader changes items
			items.Add(1)
			l.Complete(item, nil)
		}
		inRound.Add(-1)
	}, func() {})
	const callers, calls = 8, 200
	done := make(chan error, callers)
	for range callers {
		go func() {
			var err error
			for range calls {
				item := new(int)
				err = errors.Join(err, l.Do(context.Background(), item))
				if *item != 1 {
					err = errors.Join(err, errors.New("an item was not in exactly one round"))
				}
			}
			done <- err
		}()
	}
	for range callers {
		assert.NoError(t, <-done)
	}
	assert.EqualValues(t, callers*calls, items.Load())
	assert.Zero(t, l.Queued())
}
