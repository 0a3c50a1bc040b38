package cosmos

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A throttledAccount is a store in simulated time. Each request takes 5 to 7 ms, and containers throttle
// requests above their provisioned throughput.
type throttledAccount struct {
	*testing.T
	*rig
	node *Repository
}

// newThrottledAccount returns a store whose containers have the suggested throughput or, if suggested is
// false, the minimum of 400 RU/s.
func newThrottledAccount(t *testing.T, suggested bool) *throttledAccount {
	engine, err := embedded.Open(embedded.Options{
		Throttle: true, Latency: &embedded.Latency{Base: 5 * time.Millisecond, Jitter: 2 * time.Millisecond, Seed: 1},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	a := &throttledAccount{T: t, rig: rigOf(t, accounttest.NewOnEngine(t, engine, nil))}
	a.node = a.rig.node(Options{SweepEvery: -1, Retries: 100, TailEvents: DefaultTailEvents}, false)
	made, err := a.node.Provision(t.Context(), client.ProvisionOptions{Throughput: suggested})
	require.NoError(t, err)
	require.NoError(t, client.Unfinished(made))
	return a
}

// saveEvents saves n new events for an actor.
func (a *throttledAccount) saveEvents(actor domain.ActorID, n int) {
	saved, err := a.node.Save(context.Background(), actor, repositorytest.Events(n, actor))
	require.NoError(a, err)
	require.Equal(a, n, saved.Accepted)
}

// prepareRemovablePages saves pages of events, acknowledges the events, and waits until a sweep may
// remove the pages.
func (a *throttledAccount) prepareRemovablePages(actors, pages int) {
	for range actors {
		actor := repositorytest.NewActor()
		for range pages {
			a.saveEvents(actor, DefaultTailEvents+1)
		}
		_, err := repositorytest.Drain(a.Context(), a.stores(a.node), actor, allGroups)
		require.NoError(a, err)
	}
	_, err := a.node.Sweep(a.Context())
	require.NoError(a, err)
	<-time.After(8 * day)
}

// saveP95 starts a Save at the given interval, for 20 actors in turn, until ctx ends or 400 Saves were
// started. Each Save contains batch events. saveP95 returns the 95th percentile of the durations and the
// number of Saves. Earlier Saves have made the actors known to the node.
func (a *throttledAccount) saveP95(ctx context.Context, batch int, every time.Duration) (p95 time.Duration, saves int) {
	actors := make([]domain.ActorID, 20)
	for i := range actors {
		actors[i] = repositorytest.NewActor()
		a.saveEvents(actors[i], 30)
	}
	var mu sync.Mutex
	var took []time.Duration
	var running sync.WaitGroup
	for i := 0; i < 400 && ctx.Err() == nil; i++ {
		running.Go(func() {
			began := time.Now()
			a.saveEvents(actors[i%len(actors)], batch)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
		})
		<-time.After(every)
	}
	running.Wait()
	slices.Sort(took)
	return took[len(took)*95/100], len(took)
}

func TestSweep_DelaysASaveByAQuarterAtMost(t *testing.T) {
	cases := []struct {
		name      string
		suggested bool
		batch     int
		every     time.Duration
		pages     int
	}{
		{"large Saves, 400 RU/s", false, 30, 250 * time.Millisecond, 100},
		{"small Saves, 400 RU/s", false, 1, 100 * time.Millisecond, 100},
		{"large Saves, 4,000 RU/s", true, 30, 25 * time.Millisecond, 200},
	}
	if raced {
		cases = cases[:1]
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newThrottledAccount(t, tc.suggested)
				a.prepareRemovablePages(10, tc.pages)
				alone, _ := a.saveP95(t.Context(), tc.batch, tc.every)

				ctx, swept := context.WithCancel(t.Context())
				began, units := time.Now(), a.engine.RequestUnits()
				var removed Swept
				go func() {
					defer swept()
					sweep := a.node.beginCall("sweep")
					sweep.SetBackground()
					var err error
					removed, err = a.node.sweep(t.Context(), sweep)
					require.NoError(t, err)
				}()
				beside, saves := a.saveP95(ctx, tc.batch, tc.every)
				<-ctx.Done()
				t.Logf("a Save's p95: %v; beside a sweep: %v, of %d Saves; the sweep: %v, %+v, %.0f RU with the Saves",
					alone, beside, saves, time.Since(began), removed, a.engine.RequestUnits()-units)
				require.Equal(t, 10, removed.Drawers)
				require.Greater(t, saves, 40)
				require.LessOrEqual(t, beside, alone*5/4)
			})
		})
	}
}
