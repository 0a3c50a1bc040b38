package delivery

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// This is rule DSS-11.
func TestEveryQueueGetsAWorker_IfThereAreEnough(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1)).Uint64
	require.Equal(t, []int{0}, assignWorkers(1, []int{0}, random))
	require.Equal(t, []int{0, 0}, assignWorkers(2, []int{0}, random))
	for range 20 {
		require.Contains(t, [][]int{{0}, {1}}, assignWorkers(1, []int{0, 0}, random))
	}
}

// This is rule DSS-12.
func TestSurplusWorkers_GoToLongQueues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)).Uint64
	var count [2]int
	for range 1000 {
		assigned := assignWorkers(10, []int{100, 50}, random)
		require.Len(t, assigned, 10)
		require.Contains(t, assigned, 0)
		require.Contains(t, assigned, 1)
		for _, q := range assigned {
			count[q]++
		}
	}
	require.InDelta(t, 0.5, float64(count[1]-1000)/float64(count[0]-1000), 0.1)
}

// This is rule DSS-13.
func TestFewWorkers_GoToLongQueuesMoreOften(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3)).Uint64
	lengths := append([]int{100}, slices.Repeat([]int{50}, 9)...)
	var count [10]int
	for range 1000 {
		for _, q := range assignWorkers(2, lengths, random) {
			count[q]++
		}
	}
	short := 0
	for _, n := range count[1:] {
		short += n
	}
	require.InDelta(t, 0.5, float64(short)/9/float64(count[0]), 0.15)
}

// A dispatcherTest has cursors that are offered again after each call.
type dispatcherTest struct {
	*dispatcher
	granted    []*permit
	priorities map[*service]int // priorities other than 0 with which cursors are offered again
}

func newDispatcherTest(workers, queues int) *dispatcherTest {
	d := &dispatcherTest{priorities: make(map[*service]int)}
	d.dispatcher = newDispatcher(workers, queues, rand.New(rand.NewPCG(uint64(workers), uint64(queues))).Uint64,
		func(p *permit) { d.granted = append(d.granted, p) })
	return d
}

// next ends the call that began first, offers its cursor again, and returns its permit.
func (d *dispatcherTest) next() *permit {
	p := d.granted[0]
	d.granted = d.granted[1:]
	d.offerCursor(p.service, p.queue, d.priorities[p.service])
	d.releasePermit(p)
	return p
}

func newSuspect() *service { return &service{offers: offers{suspect: true}} }

// This is rule P10.
func TestEveryQueueIsServed_WithinItsShareOfRuns(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 5, 12, 64} {
		const queues = 12
		d := newDispatcherTest(workers, queues)
		for q := range queues {
			for range 1 + 100*(q%2) {
				d.offerCursor(&service{}, q, 0)
			}
		}
		runs := (queues + workers - 1) / workers
		limit := runs * (workers + min(workers, queues)) // number of picks in these runs
		last := make(map[int]int)
		for i := range 20_000 {
			q := d.next().queue
			require.LessOrEqual(t, i-last[q], limit+workers, "%d workers, queue %d", workers, q)
			last[q] = i
		}
		require.Len(t, last, queues)
	}
}

// This is rule P10.
func TestCursorsOfAQueue_GoInTurn(t *testing.T) {
	d := newDispatcherTest(4, 1)
	last := make(map[*service]int)
	for range 100 {
		s := &service{}
		last[s] = 0
		d.offerCursor(s, 0, 0)
	}
	for i := range 5000 {
		s := d.next().service
		require.LessOrEqual(t, i-last[s], 104)
		last[s] = i
	}
}

func TestAQueueWithoutAWorker_HasOneReserved(t *testing.T) {
	d := newDispatcherTest(4, 3)
	for range 100 {
		d.offerCursor(&service{}, 2, 0)
	}
	require.Len(t, d.granted, 2, "two are left to the other queues")
	d.offerCursor(&service{}, 0, 0)
	d.offerCursor(&service{}, 1, 0)
	require.Len(t, d.granted, 4)
	d.offerCursor(&service{}, 0, 0)
	require.Len(t, d.granted, 4)
}

// This is rule P11.
func TestReceiversThatFail_GetUpToHalfOfTheWorkers(t *testing.T) {
	d := newDispatcherTest(8, 1)
	for range 100 {
		d.offerCursor(newSuspect(), 0, 0)
	}
	require.Len(t, d.granted, 4)
	for range 100 {
		d.offerCursor(&service{}, 0, 0)
	}
	require.Len(t, d.granted, 8)
	for range 1000 {
		d.next()
		suspects := 0
		for _, g := range d.granted {
			if g.suspect {
				suspects++
			}
		}
		require.LessOrEqual(t, suspects, 4)
		require.Len(t, d.granted, 8)
	}
}

// This is rule P11.
func TestACursor_MovesToTheSuspectsOfItsQueue(t *testing.T) {
	d := newDispatcherTest(2, 1)
	d.offerCursor(newSuspect(), 0, 0)
	d.offerCursor(&service{}, 0, 0)
	require.Len(t, d.granted, 2)
	s := &service{}
	d.offerCursor(s, 0, 0)
	d.setSuspect(s, true) // s was offered as a healthy receiver
	healthy := d.granted[1]
	d.releasePermit(healthy)
	require.Len(t, d.granted, 2, "half of the workers have a suspect")
	d.setSuspect(s, false)
	require.Same(t, s, d.granted[2].service)
}

// This is rule P11.
func TestCallsThatHang_LeaveHalfOfTheWorkers(t *testing.T) {
	d := newDispatcherTest(8, 1)
	for range 100 {
		d.offerCursor(&service{}, 0, 0)
	}
	for calls := 8; calls < 40; calls += 4 {
		require.Len(t, d.granted, calls)
		for _, p := range d.granted {
			d.markSlow(p)
		}
	}
	for _, p := range d.granted {
		d.releasePermit(p)
	}
	require.Zero(t, d.suspects)
	require.Equal(t, 8, d.healthy)
}
