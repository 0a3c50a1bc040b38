package cosmos

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/repositorytest"
)

// TestFlush_DelaysTheSlowestSavesByItsTwoRequests measures the largest gain of an earlier flush: it
// compares tails that are flushed with tails that never become full.
func TestFlush_DelaysTheSlowestSavesByItsTwoRequests(t *testing.T) {
	rates := []int{1, 10, 30, 100}
	if raced {
		rates = rates[3:]
	}
	for _, rate := range rates {
		flushed, roomy := trickleDelays(t, rate, DefaultTailEvents), trickleDelays(t, rate, maxTailEvents)
		n := len(flushed)
		t.Logf("%d events/s: p50 %v, p95 %v, p99 %v; without flushes %v, %v, %v", rate,
			flushed[n/2], flushed[n*95/100], flushed[n*99/100], roomy[n/2], roomy[n*95/100], roomy[n*99/100])
		const twoRequests = 2 * 7 * time.Millisecond
		require.LessOrEqual(t, flushed[n/2], roomy[n/2]+twoRequests/2)
		require.LessOrEqual(t, flushed[n*99/100], roomy[n*99/100]+twoRequests+time.Millisecond)
	}
}

// trickleDelays saves 50 single events for each of 40 actors, about rate events per second, and returns
// the sorted durations of the Saves.
func trickleDelays(t *testing.T, rate, tails int) []time.Duration {
	var took []time.Duration
	synctest.Test(t, func(t *testing.T) {
		a := newThrottledAccount(t, true)
		a.node = a.rig.node(Options{SweepEvery: -1, TailEvents: tails}, true)
		var mu sync.Mutex
		var running sync.WaitGroup
		random := seeded(3)
		for range 40 {
			actor := repositorytest.NewActor()
			a.saveEvents(actor, 1)
			for range 50 {
				running.Go(func() {
					began := time.Now()
					a.saveEvents(actor, 1)
					mu.Lock()
					defer mu.Unlock()
					took = append(took, time.Since(began))
				})
				<-time.After(time.Duration(random()%uint64(2*time.Second)) / time.Duration(rate))
			}
			running.Wait()
		}
	})
	slices.Sort(took)
	return took
}
