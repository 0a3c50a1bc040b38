package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A head has lost writes, and no gate is in front of the head. The events in the drawers are delivered,
// and new events follow them.
func TestFailover_DeliversWhatIsStoredAheadOfAHead(t *testing.T) {
	cases := sample{oneOf: 5}
	for _, opts := range []Options{
		{SweepEvery: -1, DrawerCapacity: 4}, // this node is on a Session account
		{SweepEvery: -1, DrawerCapacity: 4, TailEvents: 3},
		{Exclusive: true, SweepEvery: -1},
		{Exclusive: true, SweepEvery: -1, TailEvents: 8},
		{Exclusive: true, SweepEvery: -1, DrawerCapacity: 4},
		{Exclusive: true, SweepEvery: -1, DrawerCapacity: 4, TailEvents: 3},
	} {
		for _, kept := range []int{0, 2, 4, 7, 10} {
			for _, dequeued := range []int{0, 2, 6} {
				if dequeued > kept || raced && kept != 7 {
					continue
				}
				for _, what := range []int{1, 3} {
					if !cases.isSelected() {
						continue
					}
					name := fmt.Sprintf("exclusive %v, tails of %d, drawers of %d, %d kinds of partitions go back to %d of 30, %d are dequeued",
						opts.Exclusive, opts.TailEvents, opts.DrawerCapacity, what, kept, dequeued)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { requireStoredDelivered(t, opts, what, kept, dequeued) })
					})
				}
			}
		}
	}
}

func requireStoredDelivered(t *testing.T, opts Options, what, kept, dequeued int) {
	account := embedded.Options{Consistency: "Strong"}
	if !opts.Exclusive {
		account.Consistency = "Session"
	}
	f := newFailover(t, account, opts)
	before := repositorytest.Events(30, f.actor, repositorytest.WithWeight(25_000)) // a bundle holds at most two of these events
	node := f.node(opts, true)
	f.saveEvents(node, before[:kept], 2)
	require.Len(t, f.dequeueBundles(node, dequeued/2), dequeued)
	past := f.listPartitions(what)
	f.saveEvents(node, before[kept:20], 1)
	f.saveEvents(node, before[20:], 5)
	node.AwaitHints(t.Context(), f.actor)
	stored := idsOf(before[dequeued : 30-f.tailLen()])
	for _, p := range past {
		f.restorePartition(p)
	}
	require.Empty(t, f.readHead().findInFront(f.readGates()))
	if what == 3 {
		stored = idsOf(before[dequeued:kept])
	} else if kept > 0 {
		report, err := f.checkMailbox(f.actor, kept == 7) // repairs only if kept is 7; otherwise the next Save raises the head
		require.NoError(t, err)
		require.Contains(t, kindsOfFindings(report), drawerAhead)
		require.Empty(t, damageIn(report))
		if kept == 7 {
			require.EqualValues(t, report.Found, report.Repaired, "%v", report.Findings)
		}
	}
	after := repositorytest.Events(12, f.actor, repositorytest.WithWeight(25_000))
	other := f.node(opts, true)
	f.saveEvents(other, after[:3], 1)
	f.saveEvents(f.node(opts, true), after[3:8], 5)
	f.saveEvents(other, after[8:], 2)
	saved, err := f.node(opts, true).Save(t.Context(), f.actor, before[dequeued:30-5])
	require.NoError(t, err)
	if what == 1 && opts.TailEvents == 0 {
		require.Equal(t, repository.Saved{Duplicates: 25 - dequeued}, saved, "what is stored is known")
	}
	found := f.dequeueBundles(f.node(opts, true), 100)
	require.GreaterOrEqual(t, len(found), len(stored)+len(after))
	require.Equal(t, append(stored, idsOf(after)...), found[:len(stored)+len(after)])
	report, err := f.checkMailbox(f.actor, true)
	require.NoError(t, err)
	require.True(t, report.Clean(), "%v", report.Findings)
}

// tailLen returns the number of events in the tail of the main cabinet.
func (f *failover) tailLen() int {
	f.Helper()
	return f.readHead().Cabinets[nameOf(f.main)].tailLen()
}

// newStoreAhead returns a store whose head has lost whole drawers, and the events in the store.
func newStoreAhead(t *testing.T, opts Options) (*failover, []domain.Event) {
	f := newFailover(t, embedded.Options{}, opts)
	node := f.node(opts, true)
	before := repositorytest.Events(18, f.actor)
	f.saveEvents(node, before[:5], 1)
	past := f.listPartitions(1)
	f.saveEvents(node, before[5:], 3)
	node.AwaitHints(t.Context(), f.actor)
	stored := before[:len(before)-f.tailLen()]
	f.restorePartition(past[0])
	return f, stored
}

func TestRaiseAboveDrawers_MayStopAtAnyRequest(t *testing.T) {
	for _, tails := range []int{0, 3} {
		stopAtEachRequest(t, 10, raced && tails == 0, func(t *testing.T) (*failover, func(*Repository) error, func(int)) {
			f, stored := newStoreAhead(t, Options{Exclusive: true, SweepEvery: -1, DrawerCapacity: 4, TailEvents: tails})
			after := repositorytest.Events(8, f.actor)
			return f, f.saveStepByStep(after[:2]), func(n int) { f.continueSaving(n, stored, after) }
		})
	}
}

func TestRaiseAboveDrawers_ByTwoNodesAtOnceHappensOnce(t *testing.T) {
	for _, tails := range []int{0, 3} {
		if raced && tails == 0 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			for n := 1; ; n++ {
				f, stored := newStoreAhead(t, Options{SweepEvery: -1, DrawerCapacity: 4, TailEvents: tails})
				node, line := f.tappedNode(f.opts)
				other := f.node(f.opts, false)
				after, met := repositorytest.Events(9, f.actor), false
				line.setBefore(atNth(n, func(*http.Request) bool { return true }, func() error {
					met = true
					f.saveEvents(other, after[:4], 2)
					return nil
				}))
				_, err := node.Save(t.Context(), f.actor, after[4:6])
				require.NoError(t, err)
				f.saveEvents(node, after[6:], 1)
				found := f.dequeueBundles(f.node(f.opts, false), 100)
				if !met {
					require.Equal(t, append(idsOf(stored), idsOf(after[4:])...), found)
					require.Greater(t, n, 10)
					return
				}
				require.Len(t, found, len(stored)+len(after), "before request %d", n)
				require.Equal(t, idsOf(stored), found[:len(stored)], "before request %d", n)
				require.ElementsMatch(t, idsOf(after), found[len(stored):], "before request %d", n)
				report, err := f.checkMailbox(f.actor, true)
				require.NoError(t, err)
				require.True(t, report.Clean(), "before request %d: %v", n, report.Findings)
			}
		})
	}
}

// The drawers of an intent in flight are ahead of a head that was read before the intent. A writer must
// not raise the head above these drawers: its replacement of the head is refused, and it rolls back the
// intent.
func TestRaise_IgnoresTheDrawersOfAnIntentInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{}, Options{SweepEvery: -1, DrawerCapacity: 4})
		all := repositorytest.Events(20, f.actor)
		f.saveEvents(f.node(f.opts, false), all[:4], 4)
		once := f.opts
		once.Retries = -1
		dying, line := f.tappedNode(once)
		line.setBefore(atNth(2, isHeadReplacement, func() error { return errors.New("the process ends before the commit") }))
		cold, coldLine := f.tappedNode(f.opts)
		met := false
		coldLine.setBefore(atNth(1, isQuery, func() error { // the node has already read the head
			met = true
			_, err := dying.Save(t.Context(), f.actor, all[4:12])
			require.Error(t, err)
			return nil
		}))
		f.saveEvents(cold, all[12:], 8)
		require.True(t, met)
		require.Zero(t, counterValue(t, cold.metrics.repairs.WithLabelValues("raise")))
		require.EqualValues(t, 1, counterValue(t, cold.metrics.repairs.WithLabelValues("rollback")))
		require.Equal(t, append(idsOf(all[:4]), idsOf(all[12:])...), f.dequeueBundles(f.node(f.opts, false), 100))
		require.NoError(t, f.repairMailbox(f.actor))
	})
}

// The head has lost the last drawers of two cabinets, and new events arrive for one cabinet. Numbers of
// events in the other cabinet must not be assigned again.
func TestFailover_RaisesEveryCabinetThatIsBehind(t *testing.T) {
	for _, tails := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			f := newFailover(t, embedded.Options{}, Options{Exclusive: true, SweepEvery: -1, DrawerCapacity: 4, TailEvents: tails})
			node := f.node(f.opts, true)
			saves := func(node *Repository, n int, from ...domain.Origin) (ids []string) {
				for range n {
					for _, origin := range from {
						events := repositorytest.Events(1, f.actor, repositorytest.WithOrigin(origin), repositorytest.WithoutBundling)
						f.saveEvents(node, events, 1)
						ids = append(ids, idsOf(events)...)
					}
				}
				return ids
			}
			before := saves(node, 3, domain.TimeSeries, domain.Charges)
			past := f.listPartitions(1)
			before = append(before, saves(node, 9, domain.TimeSeries, domain.Charges)...)
			before = append(before, saves(node, 9, domain.TimeSeries)...) // the drawers of Charges do not contain these numbers
			for name, last := range f.readHead().Cabinets {               // events in tails are lost with the head
				cabinet, err := cabinetOf(f.actor, name)
				require.NoError(t, err)
				inTail, err := last.decodeTail(cabinet)
				require.NoError(t, err)
				before = slices.DeleteFunc(before, func(id string) bool {
					return inTail != nil && slices.ContainsFunc(inTail.events, func(e storedEvent) bool { return e.ID.String() == id })
				})
			}
			f.restorePartition(past[0])
			after := saves(f.node(f.opts, true), 6, domain.Charges)
			after = append(after, saves(f.node(f.opts, true), 6, domain.TimeSeries)...)
			found := f.dequeueBundles(f.node(f.opts, true), 100) // dequeueBundles requires ascending numbers
			require.Equal(t, append(before, after...), found)
			require.NoError(t, f.repairAndCheck())
		})
	}
}

// The commit of a Save also reserves for a queued Save. But it must not do this before the writer has
// queried the queued Save's cabinet for drawers ahead of the head.
func TestFailover_IsNoticedByAQueuedSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{}, Options{Exclusive: true, SweepEvery: -1, DrawerCapacity: 4})
		other := repositorytest.WithContentType("timeseries-other")
		first, behind := repositorytest.Events(9, f.actor), repositorytest.Events(18, f.actor, other)
		node := f.node(f.opts, true)
		f.saveEvents(node, first[:3], 3)
		f.saveEvents(node, behind[:3], 3)
		past := f.listPartitions(1)
		f.saveEvents(node, behind[3:12], 3)
		node.AwaitHints(t.Context(), f.actor)
		f.restorePartition(past[0])

		node, line := f.tappedNode(f.opts)
		var gathered sync.WaitGroup
		line.setBefore(atNth(2, isWrite, func() error { // runs before the write of the intent, which succeeds
			gathered.Go(func() {
				saved, err := node.Save(context.Background(), f.actor, behind[12:])
				assert.NoError(t, err)
				assert.Equal(t, repository.Saved{Accepted: 6}, saved)
			})
			synctest.Wait()
			return nil
		}))
		f.saveEvents(node, first[3:], 6)
		gathered.Wait()
		bundles, err := repositorytest.Drain(t.Context(), f.stores(f.node(f.opts, true)), f.actor, allGroups)
		require.NoError(t, err)
		found := make(map[domain.CabinetKey][]string)
		for _, b := range bundles {
			for _, e := range b.Events {
				found[e.Cabinet()] = append(found[e.Cabinet()], e.ID.String())
			}
		}
		require.Equal(t, map[domain.CabinetKey][]string{first[0].Cabinet(): idsOf(first), behind[0].Cabinet(): idsOf(behind)}, found)
		require.NoError(t, f.repairAndCheck())
	})
}
