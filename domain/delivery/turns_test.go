package delivery

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASingleCursor_DoesNotWaitForACrowdedStream(t *testing.T) {
	d := newDispatcherTest(1, 2)
	crowded, other := &topic{}, &topic{}
	for range 1000 {
		d.offerCursor(&service{topic: crowded}, 0, 0)
	}
	alone := &service{topic: other}
	d.offerCursor(alone, 0, 0)
	last := make(map[*service]int)
	for i := range 10_000 {
		s := d.next().service
		if s == alone {
			require.LessOrEqual(t, i-last[s], 2*2, "two streams")
		}
		last[s] = i
	}
	require.Len(t, last, 1001)
	for _, i := range last {
		require.LessOrEqual(t, 10_000-i, 2*1001, "a cursor of the crowded stream waits for each other cursor twice")
	}
}

// The oracle is a slice of all values.
func TestTurns_LoseNothingAndAlternate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	topics := []*topic{nil, {}, {}, {}}
	var all turns[int]
	held := make(map[int]*turn[int])
	var order []int
	for n := range 20_000 {
		switch {
		case rng.IntN(2) == 0:
			held[n] = all.add(topics[rng.IntN(len(topics))], n)
			order = append(order, n)
		case len(order) == 0:
		case rng.IntN(4) == 0:
			i := rng.IntN(len(order))
			all.remove(held[order[i]])
			delete(held, order[i])
			order = append(order[:i], order[i+1:]...)
		default:
			oldest := order[0]
			got := all.takeNext()
			require.Contains(t, held, got)
			if all.last == 0 {
				require.Equal(t, oldest, got)
			}
			delete(held, got)
			for i, other := range order {
				if other == got {
					order = append(order[:i], order[i+1:]...)
					break
				}
			}
		}
		require.Equal(t, len(order), all.len())
	}
	for range order {
		got := all.takeNext()
		require.Contains(t, held, got)
		delete(held, got)
	}
	require.Empty(t, all.of)
	require.Zero(t, all.topics.Len())
}
