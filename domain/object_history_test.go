package domain_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
)

func newRNG(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// A historyTest configures how random histories are generated and delivered.
type historyTest struct {
	name      string
	nulls     bool
	tick      time.Duration // resolution of the times of events
	isInOrder bool
	limits    []domain.ObjectLimits
	advance   int // see objectStore.advance
}

// historyCount returns the number of histories that a test runs: n, unless the variable
// MESSAGEHUB_OBJECT_HISTORIES is set.
func historyCount(t *testing.T, n int) int {
	if text := os.Getenv("MESSAGEHUB_OBJECT_HISTORIES"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	return n
}

// TestObject_MatchesTheBucket delivers the events of random histories twice each, in random order,
// to an object that spills no rows. It requires that the object has the simulated bucket's state.
func TestObject_MatchesTheBucket(t *testing.T) {
	for _, tc := range []historyTest{
		{name: "native, in any order", tick: time.Second},
		{name: "with nulls, in any order", nulls: true, tick: time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(historyCount(t, 50_000)) {
				rng := newRNG(seed)
				b := objecttest.RandomBucket(rng, 14, tc.nulls, tc.tick)
				o := domain.Object{}
				u := o.Update(nil)
				for range 2 {
					for _, i := range rng.Perm(len(b.Events)) {
						u.Apply(b.Events[i : i+1])
					}
				}
				changes, _ := u.Finish(domain.ObjectLimits{})
				got := ""
				if c := changes.Object.Current; c != nil {
					got = c.ETag
				}
				if got != b.Current() || changes.Object.Duplicates != int64(len(b.Events)) || len(changes.Object.Rows) != len(b.Events) {
					require.Equal(t, b.Current(), got, "seed %d", seed)
					require.EqualValues(t, len(b.Events), changes.Object.Duplicates, "seed %d", seed)
					require.Len(t, changes.Object.Rows, len(b.Events), "seed %d", seed)
				}
			}
		})
	}
}

// TestObject_SpillsAndMatchesTheBucket delivers random histories to objects with few rows, and
// checks the objects after each update. It requires the same rows as in an object that spills none.
// Times with a resolution of one second are often equal, so the events of these histories arrive in
// the order of the bucket.
func TestObject_SpillsAndMatchesTheBucket(t *testing.T) {
	few := []domain.ObjectLimits{{Rows: 1}, {Rows: 2}, {Rows: 3}, {Rows: 4}, {Rows: 8}, {Rows: 7, Bytes: 900}}
	for _, tc := range []historyTest{
		{name: "native, in any order", tick: time.Second, limits: few},
		{name: "with nulls, in any order", nulls: true, tick: time.Millisecond, limits: few},
		{name: "with nulls and equal times, in order", nulls: true, tick: time.Second, isInOrder: true, limits: few},
		{name: "with nulls, in any order, one spilled row at a time moved in advance", nulls: true, tick: time.Millisecond, limits: few, advance: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			queries, spilled, moved := 0, int64(0), 0
			for seed := range uint64(historyCount(t, 200)) {
				rng := newRNG(seed)
				b := objecttest.RandomBucket(rng, 30, tc.nulls, tc.tick)
				s, plain := newObjectStore(t, tc.limits[rng.IntN(len(tc.limits))]), newObjectStore(t, domain.ObjectLimits{})
				s.advance = tc.advance
				tc.deliverTwice(rng, b.Events, s, plain)
				require.Equal(t, plain.describe(), s.describe(), "seed %d", seed)
				require.Equal(t, plain.describePairs(), s.describePairs(), "seed %d", seed)
				got := ""
				if s.object.Current != nil {
					got = s.object.Current.ETag
				}
				require.Equal(t, b.Current(), got, "seed %d", seed)
				require.EqualValues(t, len(b.Events), s.object.Events, "seed %d", seed)
				require.EqualValues(t, len(b.Events), s.object.Duplicates, "seed %d", seed)
				queries += s.queries
				spilled += s.object.Spilled
				moved += s.moved
			}
			require.Equal(t, tc.advance > 0, moved > 0)
			require.Positive(t, queries)
			require.Positive(t, spilled)
		})
	}
}

// deliverTwice ingests each event twice. It randomly combines events into calls, and calls into
// updates.
func (tc historyTest) deliverTwice(rng *rand.Rand, events []domain.ObjectEvent, stores ...*objectStore) {
	order := make([]int, len(events))
	for i := range order {
		order[i] = i
	}
	again := rng.Perm(len(order))
	if !tc.isInOrder {
		order = rng.Perm(len(order))
	}
	for _, order := range [][]int{order, again} {
		for len(order) > 0 {
			var update [][]domain.ObjectEvent
			for range 1 + rng.IntN(3) {
				n := min(1+rng.IntN(3), len(order))
				if tc.isInOrder { // a call with several events would sort them by time
					n = min(n, 1)
				}
				var call []domain.ObjectEvent
				for _, i := range order[:n] {
					call = append(call, events[i])
				}
				update, order = append(update, call), order[n:]
			}
			for _, s := range stores {
				s.ingestCalls(update...)
				s.checkObject()
			}
		}
	}
}
