package cosmos

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

var order = repository.AdminAction{Who: "kim", Why: "ticket 4711"}

// damagePage overwrites the page of a slot so that it cannot be decoded.
func (f *failover) damagePage(drawer string, slot int) {
	f.Helper()
	var ops azcosmos.PatchOperations
	ops.AppendSet("/events", []byte("not what was there"))
	node := f.node(f.opts, false)
	require.NoError(f, node.beginCall("test").Patch(f.Context(), node.db.cabinets, drawer, pageID(slot), ops, &struct{}{}))
}

// newStoreWithLosses saves 20 events in drawers of six and dequeues four of them. Then lose deletes or
// damages some pages.
func newStoreWithLosses(t *testing.T, account embedded.Options, lose func(f *failover, drawers []string)) (*failover, []domain.Event) {
	f := newFailover(t, account, Options{SweepEvery: -1, DrawerCapacity: 6, TailEvents: 3})
	node := f.node(f.opts, true)
	events := repositorytest.Events(20, f.actor, repositorytest.WithWeight(20_000)) // a bundle holds at most two of these events
	f.saveEvents(node, events[:18], 6)
	f.saveEvents(node, events[18:], 1)
	require.Len(t, f.dequeueBundles(node, 2), 4)
	node.AwaitHints(t.Context(), f.actor)
	drawers := make([]string, 3)
	for id, doc := range f.readPartition(node.db.cabinets, cabinetKey(f.main)).docs {
		if strings.HasPrefix(id, blockFilterPrefix) {
			continue
		}
		var d drawer
		require.NoError(t, node.beginCall("test").Decode(doc, "", &d))
		drawers[d.Ordinal-1] = id
	}
	lose(f, drawers)
	return f, events
}

func TestAbandon_ContinuesAfterLostPages(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lose  func(f *failover, drawers []string)
		lost  []int // the events with the indexes lost[0] to lost[1]-1 are lost
		slots []repository.LostSlots
	}{
		{
			"the page is gone", func(f *failover, drawers []string) { f.deleteDocument(drawers[0], 0) },
			[]int{4, 6},
			[]repository.LostSlots{{Ordinal: 1, From: 4, To: 6}},
		},
		{
			"the page is damaged", func(f *failover, drawers []string) { f.damagePage(drawers[0], 0) },
			[]int{4, 6},
			[]repository.LostSlots{{Ordinal: 1, From: 4, To: 6}},
		},
		{
			"two pages in two drawers", func(f *failover, drawers []string) { f.deleteDocument(drawers[0], 0); f.damagePage(drawers[1], 0) },
			[]int{4, 12},
			[]repository.LostSlots{{Ordinal: 1, From: 4, To: 6}, {Ordinal: 2, To: 6}},
		},
		{"all that is in pages", func(f *failover, drawers []string) {
			for _, d := range drawers {
				f.deleteDocument(d, 0)
			}
		}, []int{4, 18}, []repository.LostSlots{{Ordinal: 1, From: 4, To: 6}, {Ordinal: 2, To: 6}, {Ordinal: 3, To: 6}}},
	} {
		for _, consistency := range []string{"Strong", "Session"} {
			t.Run(tc.name+", "+consistency, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, events := newStoreWithLosses(t, embedded.Options{Consistency: consistency}, tc.lose)
					var log bytes.Buffer
					logged := f.opts
					logged.Logger = slog.New(slog.NewTextHandler(&log, nil))
					node := f.node(logged, true)
					_, err := node.NextUnacknowledged(t.Context(), f.actor, allGroups)
					require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
					require.ErrorContains(t, err, "queue abandon")
					require.Contains(t, log.String(), "a page is lost")
					others := repositorytest.Events(2, f.actor, repositorytest.WithContentType("other"))
					f.saveEvents(node, others, 1)
					require.Equal(t, idsOf(others), f.dequeueUntilDamage(node))

					loss, err := node.Abandon(t.Context(), f.main, order)
					require.NoError(t, err)
					require.EqualValues(t, tc.lost[1]-tc.lost[0], loss.Events)
					require.EqualValues(t, tc.lost[0]+1, loss.First)
					require.EqualValues(t, tc.lost[1], loss.Last)
					for i := range loss.Slots {
						require.NotEmpty(t, loss.Slots[i].Drawer)
						loss.Slots[i].Drawer = ""
					}
					require.Equal(t, tc.slots, loss.Slots)
					again := events[tc.lost[0]:tc.lost[1]]
					f.saveEvents(f.node(f.opts, true), again[:1], 1)
					f.saveEvents(node, again[1:], 1)
					require.Equal(t, append(idsOf(events[tc.lost[1]:]), idsOf(again)...), f.dequeueBundles(node, 100))
					report, err := f.checkMailbox(f.actor, true)
					require.NoError(t, err)
					for _, kind := range kindsOfFindings(report) {
						require.Contains(t, []string{pageMissing, pageDamaged, tailLeft, entryStale}, kind, "%v", report.Findings)
					}
				})
			})
		}
	}
}

func (f *failover) deleteDocument(drawer string, slot int) {
	f.Helper()
	node := f.node(f.opts, false)
	require.NoError(f, node.beginCall("test").DeleteIfExists(f.Context(), node.db.cabinets, drawer, pageID(slot)))
}

// dequeueUntilDamage dequeues until a Peek fails with Damaged, and returns the ids of the dequeued
// events.
func (f *failover) dequeueUntilDamage(node *Repository) (ids []string) {
	f.Helper()
	for {
		b, err := repositorytest.Peek(f.Context(), f.stores(node), f.actor, allGroups, repositorytest.NewBundleID())
		if err != nil {
			require.Equal(f, domain.Damaged, domain.KindOf(err), "%v", err)
			return ids
		}
		for _, e := range b.Events {
			ids = append(ids, e.ID.String())
		}
		_, err = node.Acknowledge(f.Context(), f.actor, b.ID)
		require.NoError(f, err)
	}
}

func TestLostPage_EndsTheBundleBeforeIt(t *testing.T) {
	for _, lose := range []func(f *failover, drawers []string){
		func(f *failover, drawers []string) { f.deleteDocument(drawers[1], 0) },
		func(f *failover, drawers []string) { f.damagePage(drawers[1], 0) },
	} {
		synctest.Test(t, func(t *testing.T) {
			f, events := newStoreWithLosses(t, embedded.Options{}, lose)
			node := f.node(f.opts, true)
			require.Equal(t, idsOf(events[4:6]), f.dequeueUntilDamage(node))
			loss, err := node.Abandon(t.Context(), f.main, order)
			require.NoError(t, err)
			require.EqualValues(t, 6, loss.Events)
			require.Equal(t, idsOf(events[12:]), f.dequeueBundles(node, 100))
		})
	}
}

func TestAbandon_MayStopAtAnyRequest(t *testing.T) {
	stopAtEachRequest(t, 5, false, func(t *testing.T) (*failover, func(*Repository) error, func(int)) {
		f, events := newStoreWithLosses(t, embedded.Options{}, func(f *failover, drawers []string) { f.deleteDocument(drawers[0], 0) })
		abandon := func(node *Repository) error {
			_, err := node.Abandon(t.Context(), f.main, order)
			return err
		}
		return f, abandon, func(n int) {
			other := f.node(f.opts, true)
			again := abandon(other)
			records, err := other.Records(t.Context(), f.actor, 10)
			require.NoError(t, err)
			require.Len(t, records, 1, "stopped at request %d: the loss is recorded once, with the gate behind it", n)
			require.NotNil(t, records[0].Lost)
			require.EqualValues(t, 2, records[0].Lost.Events)
			if again != nil {
				require.Equal(t, domain.Conflict, domain.KindOf(again), "%v", again)
			}
			require.Equal(t, idsOf(events[6:]), f.dequeueBundles(other, 100))
		}
	})
}

func TestAbandon_IsRefusedDuringAPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n := 1; ; n++ {
			f, events := newStoreWithLosses(t, embedded.Options{}, func(f *failover, drawers []string) { f.deleteDocument(drawers[0], 0) })
			node, line := f.tappedNode(f.opts)
			other, met := f.node(f.opts, false), false
			line.setBefore(atNth(n, func(*http.Request) bool { return true }, func() error {
				met = true
				if _, err := other.Abandon(t.Context(), f.main, order); err != nil {
					return err
				}
				_, err := repositorytest.Peek(t.Context(), f.stores(other), f.actor, allGroups, repositorytest.NewBundleID())
				return err
			}))
			_, err := node.Abandon(t.Context(), f.main, order)
			found := f.dequeueBundles(f.node(f.opts, false), 100)
			require.Equal(t, idsOf(events[6:]), found, "before request %d", n)
			if !met {
				require.NoError(t, err)
				require.Greater(t, n, 5)
				return
			}
			require.Equal(t, domain.Conflict, domain.KindOf(err), "before request %d: %v", n, err)
		}
	})
}

func TestSave_ContinuesWithoutTheIdsOfALostPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, events := newStoreWithLosses(t, embedded.Options{}, func(f *failover, drawers []string) { f.deleteDocument(drawers[1], 0); f.damagePage(drawers[2], 0) })
		node := f.node(f.opts, true)
		saved, err := node.Save(t.Context(), f.actor, slices.Concat(events[:6], events[18:]))
		require.NoError(t, err)
		require.Equal(t, repository.Saved{Duplicates: 8}, saved)
		saved, err = node.Save(t.Context(), f.actor, events[6:8])
		require.NoError(t, err)
		require.Equal(t, repository.Saved{Accepted: 2}, saved)
	})
}

func TestLostPage_IsNotConcludedFromAStaleRead(t *testing.T) {
	for age := 1; age < 16; age++ {
		synctest.Test(t, func(t *testing.T) {
			var now atomic.Int32
			f := newFailover(t, embedded.Options{Stale: func() int { return int(now.Load()) }}, Options{SweepEvery: -1})
			events := []domain.Event{repositorytest.Event(f.actor), repositorytest.Event(f.actor, repositorytest.WithContentType("other"))}
			f.saveEvents(f.node(f.opts, true), events, 1)
			node, line := f.tappedNode(f.opts)
			var stale atomic.Int32
			stale.Store(1)
			line.setBefore(func(req *http.Request) error {
				now.Store(0)
				if isQuery(req) && strings.Contains(req.URL.Path, "/colls/cabinet/") && !strings.Contains(req.Header.Get("x-ms-documentdb-partitionkey"), "|") && stale.Add(-1) >= 0 {
					now.Store(int32(age))
				}
				return nil
			})
			require.Equal(t, idsOf(events), f.dequeueBundles(node, 2))
		})
	}
}

func TestAbandon_VoidsRememberedIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{}, Options{SweepEvery: -1})
		node, other := f.node(f.opts, true), f.node(f.opts, true)
		events := repositorytest.Events(5, f.actor)
		f.saveEvents(node, events, 5)
		_, err := other.Save(t.Context(), f.actor, events) // other now has the ids of these events in memory
		require.NoError(t, err)
		f.deleteDocument(f.readHead().Cabinets[nameOf(f.main)].Drawer, 0)
		_, err = node.Abandon(t.Context(), f.main, order)
		require.NoError(t, err)
		f.saveEvents(node, events[:2], 2)
		f.saveEvents(other, repositorytest.Events(1, f.actor), 1)
		f.saveEvents(other, events[2:], 3)
	})
}

func TestLostPage_IsNotOvertakenWhereTheOrderIsByRecipient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{}, Options{SweepEvery: -1, Ordering: domain.ByRecipient})
		node := f.node(f.opts, true)
		f.saveEvents(node, []domain.Event{
			repositorytest.Event(f.actor), repositorytest.Event(f.actor, repositorytest.WithContentType("other")),
			repositorytest.Event(f.actor, repositorytest.WithOrigin(domain.Charges)),
		}, 3)
		f.deleteDocument(f.readHead().Cabinets[nameOf(f.main)].Drawer, 0)
		require.Len(t, f.dequeueUntilDamage(node), 1)
		_, err := node.Abandon(t.Context(), f.main, order)
		require.NoError(t, err)
		require.Len(t, f.dequeueBundles(node, 10), 1)
	})
}

func TestAbandon_EndsBeforeTheNextPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{}, Options{SweepEvery: -1})
		node, events := f.node(f.opts, true), repositorytest.Events(20, f.actor)
		f.saveEvents(node, events, 5)
		drawer := f.readHead().Cabinets[nameOf(f.main)].Drawer
		f.deleteDocument(drawer, 0)
		f.damagePage(drawer, 10)
		loss, err := node.Abandon(t.Context(), f.main, order)
		require.NoError(t, err)
		require.EqualValues(t, 5, loss.Events)
		require.Equal(t, idsOf(events[5:10]), f.dequeueUntilDamage(node))
		loss, err = node.Abandon(t.Context(), f.main, order)
		require.NoError(t, err)
		require.Equal(t, []repository.LostSlots{{Drawer: drawer, Ordinal: 1, From: 10, To: 15}}, loss.Slots)
		require.Equal(t, idsOf(events[15:]), f.dequeueBundles(node, 100))
	})
}
