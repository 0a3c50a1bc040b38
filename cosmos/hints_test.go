package cosmos

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A hintLoad is a node whose recipients peek and dequeue one event after another, while
// each request takes 5 to 7 ms.
type hintLoad struct {
	rig     *rig
	node    *Repository
	physics atomic.Bool
	actors  []domain.ActorID

	mu    sync.Mutex
	peeks []time.Duration
}

func newHintLoad(t *testing.T, recipients, events int) *hintLoad {
	t.Helper()
	l := &hintLoad{}
	l.rig = newRig(t, embedded.Options{Latency: &embedded.Latency{
		Base: 5 * time.Millisecond, Jitter: 2 * time.Millisecond,
		Sleep: func(ctx context.Context, d time.Duration) {
			if l.physics.Load() {
				client.Sleep(ctx, d)
			}
		},
	}})
	l.node = l.rig.node(Options{Exclusive: true, SweepEvery: -1}, true)
	for range recipients {
		actor := repositorytest.NewActor()
		alone := func(e *domain.Event) { e.SupportsBundling = false }
		_, err := l.node.Save(t.Context(), actor, repositorytest.Events(events, actor, alone))
		require.NoError(t, err)
		l.actors = append(l.actors, actor)
	}
	synctest.Wait()
	return l
}

// run makes pairs of a Peek and a Dequeue, for one recipient after the other. It starts rate pairs per
// second.
func (l *hintLoad) run(ctx context.Context, pairs int, rate float64) error {
	l.physics.Store(true)
	start := time.Now()
	stores := l.rig.stores(l.node)
	var g errgroup.Group
	for i, actor := range l.actors {
		g.Go(func() error {
			for n := i; n < pairs; n += len(l.actors) {
				client.Sleep(ctx, time.Until(start.Add(time.Duration(float64(n)/rate*float64(time.Second)))))
				began := time.Now()
				peeked, err := repositorytest.Peek(ctx, stores, actor, allGroups, domain.BundleID{})
				if err != nil {
					return err
				}
				l.took(time.Since(began))
				if _, err := l.node.Acknowledge(ctx, actor, peeked.ID); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (l *hintLoad) took(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peeks = append(l.peeks, d)
}

// quantile returns the duration of Peeks at a quantile: 0.99 is the 99th percentile.
func (l *hintLoad) quantile(share float64) time.Duration {
	slices.Sort(l.peeks)
	return l.peeks[int(share*float64(len(l.peeks)-1))]
}

// If hintWriters were only 8, the median Peek would take 124 ms, and three in four Peeks would repair an
// entry.
func TestHints_KeepUpWith2000PeeksAndDequeuesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pairs, rate, each = 500, 2000, 5
		l := newHintLoad(t, pairs/each, each)
		require.NoError(t, l.run(t.Context(), pairs, rate))
		require.Less(t, l.quantile(0.99), 30*time.Millisecond, "four rounds of 7 ms")
		require.Zero(t, testutil.ToFloat64(l.node.metrics.repairs.WithLabelValues("pointer")))
		require.Zero(t, testutil.ToFloat64(l.node.metrics.dropped))
	})
}

func TestHints_OfOneRecipientAreWrittenInOrderByOneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, embedded.Options{})
		node := rig.node(Options{Exclusive: true, SweepEvery: -1}, true)
		actor := repositorytest.NewActor()
		synctest.Wait()
		var order []int // unguarded, so that the race detector reports two concurrent writers
		for i := range 100 {
			node.hints.add(actor, func(ctx context.Context, _ *call) {
				client.Sleep(ctx, time.Millisecond)
				order = append(order, i)
			})
		}
		node.AwaitHints(t.Context(), actor)
		require.Len(t, order, 100)
		require.True(t, slices.IsSorted(order))
	})
}

func TestAwaitHints_DoesNotWaitForOtherRecipients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, embedded.Options{})
		node := rig.node(Options{Exclusive: true, SweepEvery: -1}, true)
		synctest.Wait()
		written := 0
		for range hintWriters {
			node.hints.add(repositorytest.NewActor(), func(ctx context.Context, _ *call) { client.Sleep(ctx, time.Second) })
		}
		actor := repositorytest.NewActor()
		node.hints.add(actor, func(ctx context.Context, _ *call) {
			client.Sleep(ctx, time.Millisecond)
			written++
		})
		began := time.Now()
		node.hints.awaitHints(t.Context(), actor)
		require.Equal(t, 1, written)
		require.Equal(t, time.Millisecond, time.Since(began))
	})
}

func TestHints_AreBoundedAndDroppedWhenTheNodeStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, embedded.Options{})
		node := New(rig.connect(), rig.content, Options{Exclusive: true, SweepEvery: -1})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = node.hints.run(ctx) })
		synctest.Wait()
		actor := repositorytest.NewActor()
		for _, n := range []int{hintWriters, maxHints + 1} { // the first hints occupy all writers, the following ones fill the queue
			for range n {
				node.hints.add(repositorytest.NewActor(), func(ctx context.Context, _ *call) { <-ctx.Done() })
			}
			synctest.Wait()
		}
		node.hints.add(actor, func(context.Context, *call) { panic("it has no room") })
		require.Equal(t, maxHints, node.hints.count)
		require.NotZero(t, testutil.ToFloat64(node.metrics.dropped))
		cancel()
		running.Wait()
		require.Zero(t, node.hints.count)
		require.Empty(t, node.hints.of)
	})
}
