package domain_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
)

const (
	allOrders    = 6   // with up to this many events, the tests try all orders: 720 for 6 events
	randomOrders = 720 // with more events, the tests try this many random orders
)

// TestObjectTables_HaveOneResultInAnyOrder delivers the events of each table with native sequencers
// in many orders, each event twice. It requires the same rows in each order, the same current row,
// and one duplicate of each row.
func TestObjectTables_HaveOneResultInAnyOrder(t *testing.T) {
	for _, tc := range objecttest.NativeTables {
		t.Run(tc.Name, func(t *testing.T) { checkInAnyOrder(t, tc.Script, (*objectStore).describe) })
	}
}

// TestObjectPairs_HaveOneResultInAnyOrder delivers the events of each table of paired mode in many
// orders, each event twice. It ignores number_reordered, the only value that depends on the order.
func TestObjectPairs_HaveOneResultInAnyOrder(t *testing.T) {
	for _, tc := range objecttest.PairTables {
		if tc.Name[:5] == "FM-49" {
			continue // the events of FM-49 have null sequencers
		}
		t.Run(tc.Name, func(t *testing.T) {
			checkInAnyOrder(t, tc.Script, func(s *objectStore) string {
				for id, r := range s.spilled {
					r.Reordered = 0
					s.spilled[id] = r
				}
				for i := range s.object.Rows {
					s.object.Rows[i].Reordered = 0
				}
				return s.describePairs()
			})
		})
	}
}

func checkInAnyOrder(t *testing.T, script string, describe func(s *objectStore) string) {
	var events []domain.ObjectEvent
	ids := make(map[domain.ObjectRowID]bool)
	for _, e := range slices.Concat(objecttest.Calls(script)...) {
		if !ids[e.ID()] {
			events = append(events, e)
			ids[e.ID()] = true
		}
	}
	inOrder := newObjectStore(t, domain.ObjectLimits{})
	inOrder.ingestCalls(events)
	inOrder.ingestCalls(events)
	want := describe(inOrder)
	rng := newRNG(25)
	tryOrders(rng, len(events), func(order []int) {
		limits := limitsOfTables[rng.IntN(len(limitsOfTables))]
		s := newObjectStore(t, limits)
		again := rng.Perm(len(events))
		for i := range events {
			s.ingestCalls(events[order[i] : order[i]+1])
			if rng.IntN(2) == 0 { // delivers the event twice in a row
				s.ingestCalls(events[order[i] : order[i]+1])
				again = slices.DeleteFunc(again, func(j int) bool { return j == order[i] })
			}
		}
		for _, i := range again {
			s.ingestCalls(events[i : i+1])
		}
		s.checkObject()
		require.Equal(t, want, describe(s), "limits %v, order %v", limits, order)
	})
}

// tryOrders calls check with every order of n numbers, or with many random ones.
func tryOrders(rng *rand.Rand, n int, check func(order []int)) {
	if n > allOrders {
		for range randomOrders {
			check(rng.Perm(n))
		}
		return
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var permute func(from int)
	permute = func(from int) {
		if from == n {
			check(order)
			return
		}
		for i := from; i < n; i++ {
			order[from], order[i] = order[i], order[from]
			permute(from + 1)
			order[from], order[i] = order[i], order[from]
		}
	}
	permute(0)
}

// TestObjectVersionsInAnyOrder delivers events of several versions in random orders.
func TestObjectVersionsInAnyOrder(t *testing.T) {
	checkInAnyOrder(t, "[C@1/v1, C@2/v2, C@3/v3, D@4/v2, M@5/v4, C@6/v5, D@7/v5, D@8/v4, D@9/v3]", (*objectStore).describe)
}

// TestObjectOfCrawlIsCurrent tests rule FM-79: if a crawl finds an object, its row becomes current,
// whichever events arrived before.
func TestObjectOfCrawlIsCurrent(t *testing.T) {
	var before []domain.ObjectEvent
	for i := range 12 {
		e := domain.ObjectEvent{
			Type: domain.ObjectEventType(1 + i%2), Time: objecttest.FirstMoment,
			Carrier: domain.Carrier{Message: "before", Index: i},
		}
		if i/2%2 == 0 {
			e.Sequencer = must(domain.ParseSequencer(domain.HexSequencer, []string{"10", "11", "12", "13", "14", "15"}[i/4*2+i%2]))
		}
		if i >= 4 {
			e.StorageClass = domain.ClassStandard
		}
		if i >= 8 {
			e.IngestID = "ingest"
		}
		before = append(before, e)
	}
	for _, version := range []string{"", "v"} {
		crawl := domain.ObjectEvent{
			Type: domain.ObjectCreated, Version: must(domain.ParseVersionID(version)), Time: objecttest.FirstMoment,
			Carrier: domain.Carrier{Message: "crawl"}, ObjectFacts: domain.ObjectFacts{Reason: domain.Crawl},
		}
		for subset := range 1 << len(before) {
			var events []domain.ObjectEvent
			for i := range before {
				before[i].Version = crawl.Version
				if subset>>i&1 == 1 {
					events = append(events, before[i])
				}
			}
			s := newObjectStore(t, domain.ObjectLimits{Rows: subset % 5})
			s.ingestCalls(events)
			s.ingestCalls([]domain.ObjectEvent{crawl})
			require.NotNil(t, s.object.Current, "subset %b", subset)
			require.Equal(t, domain.Crawl, s.object.Current.Reason, "subset %b", subset)
		}
	}
}
