package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// An entryMeter sums the request units of all requests. It also sums the units of requests about entries:
// choice those of queries that choose a bundle, upkeep those of creating, raising and deleting entries.
type entryMeter struct {
	next faulty.Doer

	mu      sync.Mutex
	total   float64
	choice  float64
	upkeep  float64
	writes  int // number of writes of entries
	choices int // number of queries that choose a bundle
}

func (m *entryMeter) Do(req *http.Request) (*http.Response, error) {
	isQuery := req.Header.Get("X-Ms-Documentdb-Query") != "" || req.Header.Get("X-Ms-Documentdb-Isquery") != ""
	key := req.Header.Get("X-Ms-Documentdb-Partitionkey")
	isEntry := strings.Contains(req.URL.Path, "/"+catalogContainer+"/") && strings.Contains(key, "|") && !strings.Contains(key, sweepKey)
	body := bodyOf(req)
	resp, err := m.next.Do(req)
	if err != nil {
		return resp, err
	}
	units, _ := strconv.ParseFloat(resp.Header.Get("X-Ms-Request-Charge"), 64)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total += units
	switch {
	case !isEntry:
	case isQuery && !strings.Contains(body, "@ordinal"): // excludes the query of moveEntries, which counts as upkeep
		m.choice += units
		m.choices++
	default:
		m.upkeep += units
		if !isQuery && req.Method != http.MethodGet && resp.StatusCode < http.StatusMultipleChoices {
			m.writes++
		}
	}
	return resp, nil
}

// A traffic is a pattern of Saves and Peeks for a recipient.
type traffic struct {
	name   string
	opts   Options
	rounds int
	batch  int  // number of events saved in each round
	kinds  int  // number of kinds of events, saved in rotation
	fetch  int  // number of rounds after which all waiting events are dequeued
	unused bool // no Peek reads an entry, and no Save writes one
}

func TestEntries_CostATenthOfAnEventsLife(t *testing.T) {
	tails := Options{TailEvents: DefaultTailEvents}
	inOrder := Options{TailEvents: DefaultTailEvents, Ordering: domain.ByRecipient}
	small := Options{TailEvents: DefaultTailEvents, DrawerCapacity: 500}
	for _, tc := range []traffic{
		{"singles through tails, fetched at once", tails, 60, 1, 1, 1, true},
		{"singles through tails, fetched by 45", tails, 90, 1, 1, 45, true},
		{"singles of three kinds through tails, fetched by 6", tails, 60, 1, 3, 6, true},
		{"singles of three kinds, fetched by 75", tails, 150, 1, 3, 75, false},
		{"singles of ten kinds, fetched by 75", tails, 150, 1, 10, 75, false},
		{"singles without tails, fetched by 100", Options{}, 100, 1, 1, 100, false},
		{"singles of three kinds without tails, fetched by 9", Options{}, 90, 1, 3, 9, false},
		{"batches of 125, fetched at once", tails, 40, 125, 1, 1, false},
		{"batches of 125, fetched by 10", tails, 40, 125, 1, 10, false},
		{"batches of 125 of three kinds, fetched at once", tails, 40, 125, 3, 1, false},
		{"batches of 75 of three kinds, fetched at once", tails, 20, 75, 3, 1, false},
		{"batches of 250 of two kinds, fetched at once", tails, 20, 250, 2, 1, false},
		{"batches of 250 of ten kinds, fetched at once", tails, 20, 250, 10, 1, false},
		{"batches of 250 of ten kinds, fetched by 4", tails, 20, 250, 10, 4, false},
		{"batches of 125 of three kinds, fetched by 10", tails, 40, 125, 3, 10, false},
		{"batches of 125 of ten kinds, fetched by 10", tails, 40, 125, 10, 10, false},
		{"batches of 125 of three kinds in small drawers, fetched by 40", small, 80, 125, 3, 40, false},
		{"batches of 30 of three kinds, in the order of the recipient", inOrder, 10, 30, 3, 5, true},
	} {
		for _, pessimistic := range []bool{false, true} {
			if raced && pessimistic {
				continue
			}
			inBubble(t, fmt.Sprintf("%s, pessimistic %v", tc.name, pessimistic), func(t *testing.T) {
				m := tc.run(t, pessimistic)
				t.Logf("%6.1f RU, upkeep %6.1f (%4.1f %%), %d writes; choice %6.1f (%4.1f %%), %d queries", m.total, m.upkeep, 100*m.upkeep/m.total, m.writes, m.choice, 100*m.choice/m.total, m.choices)
				require.LessOrEqual(t, m.upkeep, m.total/10)
				if tc.unused {
					require.Zero(t, m.writes)
					require.Zero(t, m.choices)
					require.LessOrEqual(t, m.upkeep, float64(2*tc.kinds), "the sweep looks whether a drawer has an entry")
				}
			})
		}
	}
}

func (tc *traffic) run(t *testing.T, pessimistic bool) *entryMeter {
	r := newRig(t, embedded.Options{Pessimistic: pessimistic})
	actor := repositorytest.NewActor()
	m := &entryMeter{next: r.engine.Transport()}
	db := r.account.ConnectBy(m)
	opts := tc.opts
	now := noon
	opts.Exclusive, opts.SweepEvery, opts.Clock = true, -1, func() time.Time { return now }
	node := New(db, r.content, opts)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = node.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	n := 0
	for round := range tc.rounds {
		events := make([]domain.Event, tc.batch)
		for i := range events {
			events[i] = repositorytest.Event(actor, repositorytest.WithContentType(fmt.Sprint("kind-", n%tc.kinds)))
			n++
		}
		_, err := node.Save(t.Context(), actor, events)
		require.NoError(t, err)
		if (round+1)%tc.fetch == 0 {
			_, err := repositorytest.Drain(t.Context(), r.stores(node), actor, allGroups)
			require.NoError(t, err)
			node.AwaitHints(t.Context(), actor)
		}
	}
	node.AwaitHints(t.Context(), actor)
	for range 3 {
		_, err := node.beginCall("sweep").sweepRecipient(t.Context(), actor)
		require.NoError(t, err)
		now = now.Add(9 * day)
	}
	return m
}
