package delivery

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// offerAll offers n cursors with a delivery of a priority. Each cursor is offered again after its
// call.
func (d *dispatcherTest) offerAll(n, queue, priority int) {
	for range n {
		s := &service{}
		d.priorities[s] = priority
		d.offerCursor(s, queue, priority)
	}
}

// pickPriority ends the call that began first, and returns the priority that gets its worker.
func (d *dispatcherTest) pickPriority(t *testing.T) int {
	d.next()
	require.Len(t, d.granted, d.workers)
	return d.priorities[d.granted[d.workers-1].service]
}

func TestTheHighestPriority_GoesFirstAndEachEighthPickIsTheLowest(t *testing.T) {
	for _, queues := range []int{1, 3} {
		d := newDispatcherTest(1, queues)
		d.offerAll(3, 0, 2)
		d.offerAll(3, queues-1, 9)
		for d.pickPriority(t) != 2 {
		}
		for pick := 1; pick <= 1000; pick++ {
			want := 9
			if pick%8 == 0 {
				want = 2
			}
			require.Equal(t, want, d.pickPriority(t), "%d queues, pick %d", queues, pick)
		}
	}
}

func TestCursorsOfOnePriority_GoInTurn(t *testing.T) {
	d := newDispatcherTest(1, 2)
	d.offerAll(5, 0, 9)
	d.offerAll(50, 0, 4)
	last := make(map[*service]int)
	for i := range 5000 {
		s := d.next().service
		if d.priorities[s] == 9 {
			require.LessOrEqual(t, i-last[s], 7, "of five, with each eighth pick for another")
		}
		last[s] = i
	}
	for _, i := range last {
		require.LessOrEqual(t, 5000-i, 8*51)
	}
}

// This is rule P10.
func TestEachQueueAndPriority_IsServedWithinALimit(t *testing.T) {
	for _, workers := range []int{1, 2, 5, 12, 64} {
		const queues, picks = 12, 50_000
		const limit = 64 * 10 * 2 * queues // each priority has at least one pick in 640
		d := newDispatcherTest(workers, queues)
		cursors := 0
		for q := range queues {
			for priority := range 10 {
				if (q+priority)%3 == 0 {
					d.offerAll(1, q, priority)
					cursors++
				}
			}
		}
		last := make(map[*service]int)
		for i := range picks {
			last[d.next().service] = i
		}
		require.Len(t, last, cursors, "%d workers", workers)
		for s, i := range last {
			require.LessOrEqual(t, picks-i, limit, "%d workers, priority %d", workers, d.priorities[s])
		}
	}
}

func TestACursor_MovesForwardIfItsPriorityRises(t *testing.T) {
	d := newDispatcherTest(1, 1)
	d.offerAll(10, 0, 3)
	s := &service{}
	d.offerCursor(s, 0, 0)
	d.offerCursor(s, 0, 7)
	d.releasePermit(d.granted[0])
	require.Same(t, s, d.granted[1].service)
	d.releasePermit(d.granted[1])
	require.NotSame(t, s, d.granted[2].service, "it is offered once")
}

// This is rule P11.
func TestSuspectsOfAHighPriority_GetUpToHalfOfTheWorkers(t *testing.T) {
	d := newDispatcherTest(8, 1)
	for range 100 {
		s := newSuspect()
		d.priorities[s] = 9
		d.offerCursor(s, 0, 9)
	}
	d.offerAll(100, 0, 0)
	for range 1000 {
		d.next()
		suspects := 0
		for _, p := range d.granted {
			if p.suspect {
				suspects++
			}
		}
		require.LessOrEqual(t, suspects, 4)
		require.Len(t, d.granted, 8)
	}
}

func BenchmarkDispatcher_OnePriority(b *testing.B) {
	d := newDispatcherTest(64, 12)
	d.offerAll(1000, 0, 0)
	d.offerAll(1000, 3, 0)
	for b.Loop() {
		d.next()
	}
}
