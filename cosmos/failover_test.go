package cosmos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A failover is a store in which a test can restore some partitions to an earlier state.
type failover struct {
	*testing.T
	*rig
	opts  Options
	actor domain.ActorID
	main  domain.CabinetKey
}

// A partition is a copy of all documents with one partition key.
type partition struct {
	container *azcosmos.ContainerClient
	key       string
	docs      map[string][]byte
}

func newFailover(t *testing.T, account embedded.Options, opts Options) *failover {
	f := &failover{T: t, rig: newRig(t, account), actor: repositorytest.NewActor(), opts: opts}
	first := repositorytest.Event(f.actor)
	f.main = first.Cabinet()
	return f
}

func (f *failover) readPartition(container *azcosmos.ContainerClient, key string) partition {
	f.Helper()
	node := f.node(f.opts, false)
	p := partition{container, key, make(map[string][]byte)}
	q := node.beginCall("test").Query(container, key, "SELECT * FROM c")
	for !q.IsDone() {
		items, err := q.Next(f.Context(), 1000)
		require.NoError(f, err)
		for _, item := range items {
			var doc struct {
				ID string `json:"id"`
			}
			require.NoError(f, json.Unmarshal(item, &doc))
			p.docs[doc.ID] = item
		}
	}
	return p
}

// restorePartition restores a partition to its state at the time when p was read.
func (f *failover) restorePartition(p partition) {
	f.Helper()
	pk := azcosmos.NewPartitionKeyString(p.key)
	for id := range f.readPartition(p.container, p.key).docs {
		if p.docs[id] == nil {
			_, err := p.container.DeleteItem(f.Context(), pk, id, nil)
			require.NoError(f, err)
		}
	}
	for _, doc := range p.docs {
		_, err := p.container.UpsertItem(f.Context(), pk, doc, nil)
		require.NoError(f, err)
	}
}

func (f *failover) saveEvents(node *Repository, events []domain.Event, batch int) {
	f.Helper()
	for some := range slices.Chunk(events, batch) {
		saved, err := node.Save(f.Context(), f.actor, some)
		require.NoError(f, err)
		require.Equal(f, repository.Saved{Accepted: len(some)}, saved)
	}
}

// dequeueBundles peeks and dequeues up to limit bundles, and returns the ids of their events. It requires
// that the numbers of the events ascend.
func (f *failover) dequeueBundles(node *Repository, limit int) (ids []string) {
	f.Helper()
	last := domain.Sequence(0)
	for range limit {
		b, err := repositorytest.Peek(f.Context(), f.stores(node), f.actor, allGroups, repositorytest.NewBundleID())
		if err != nil {
			require.ErrorIs(f, err, domain.ErrNoData)
			return ids
		}
		for _, e := range b.Events {
			require.Greater(f, e.Sequence, last)
			last = e.Sequence
			ids = append(ids, e.ID.String())
		}
		_, err = node.Acknowledge(f.Context(), f.actor, b.ID)
		require.NoError(f, err)
	}
	return ids
}

func idsOf(events []domain.Event) []string {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].ID.String()
	}
	return ids
}

// listPartitions returns the partitions that a failover restores: for what = 1 the head, for 2 also the
// drawers, for 3 also their pages.
func (f *failover) listPartitions(what int) []partition {
	f.Helper()
	node := f.node(f.opts, false)
	found := []partition{f.readPartition(node.db.catalog, f.actor.String())}
	if what == 1 {
		return found
	}
	drawers := f.readPartition(node.db.cabinets, cabinetKey(f.main))
	found = append(found, drawers)
	if what == 2 {
		return found
	}
	ids := []string{f.readHead().Cabinets[nameOf(f.main)].Drawer}
	for id := range drawers.docs {
		if id != ids[0] {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		found = append(found, f.readPartition(node.db.cabinets, id))
	}
	return found
}

func (f *failover) readHead() *head {
	h, err := f.node(f.opts, false).beginCall("test").readHead(f.Context(), f.actor)
	require.NoError(f, err)
	return h
}

func TestFailover_LosesNothingThatIsAcceptedAfterIt(t *testing.T) {
	cases := sample{oneOf: 5}
	for _, opts := range []Options{
		{SweepEvery: -1, DrawerCapacity: 4, TailEvents: 3}, // this node is on a Session account
		{Exclusive: true, SweepEvery: -1},
		{Exclusive: true, SweepEvery: -1, TailEvents: 8},
		{Exclusive: true, SweepEvery: -1, DrawerCapacity: 4},
		{Exclusive: true, SweepEvery: -1, DrawerCapacity: 4, TailEvents: 3},
	} {
		for what := 1; what <= 3; what++ {
			for _, kept := range []int{0, 2, 7, 10} {
				if raced && kept != 7 {
					continue
				}
				for _, dequeued := range []int{12, 20, 30} {
					if !cases.isSelected() {
						continue
					}
					name := fmt.Sprintf("exclusive %v, tails of %d, drawers of %d, %d kinds of partitions go back to %d of 30, %d are dequeued",
						opts.Exclusive, opts.TailEvents, opts.DrawerCapacity, what, kept, dequeued)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { requireNothingLost(t, opts, what, kept, dequeued) })
					})
				}
			}
		}
	}
}

func requireNothingLost(t *testing.T, opts Options, what, kept, dequeued int) {
	account := embedded.Options{Consistency: "Strong"}
	if !opts.Exclusive {
		account.Consistency = "Session"
	}
	f := newFailover(t, account, opts)
	before := repositorytest.Events(30, f.actor, repositorytest.WithWeight(25_000)) // a bundle holds at most two of these events
	node := f.node(opts, true)
	f.saveEvents(node, before[:kept], 2)
	past := f.listPartitions(what)
	f.saveEvents(node, before[kept:20], 1)
	f.saveEvents(node, before[20:], 5)
	gone := f.dequeueBundles(node, dequeued/2)
	require.Equal(t, idsOf(before[:dequeued]), gone)
	for _, p := range past {
		f.restorePartition(p)
	}

	var log bytes.Buffer
	logged := opts
	logged.Logger = slog.New(slog.NewTextHandler(&log, nil))
	other := f.node(logged, true)
	_, err := other.NextUnacknowledged(t.Context(), f.actor, allGroups)
	require.ErrorIs(t, err, domain.ErrNoData)
	if opts.Exclusive { // on a Session account, no read proves that the gate is in front
		require.Contains(t, log.String(), "a gate is in front of its head")
	}
	report, err := f.checkMailbox(f.actor, false)
	require.NoError(t, err)
	require.Contains(t, kindsOfFindings(report), gateInFront)

	if kept == 7 { // if kept is not 7, the next Save raises the head
		_, err := f.checkMailbox(f.actor, true)
		require.NoError(t, err)
		require.Zero(t, len(f.readHead().findInFront(f.readGates())))
	}
	after := repositorytest.Events(12, f.actor, repositorytest.WithWeight(25_000))
	f.saveEvents(other, after[:3], 1)
	require.Empty(t, f.readHead().findInFront(f.readGates()))
	f.saveEvents(f.node(opts, true), after[3:8], 5)
	f.saveEvents(other, after[8:], 2)

	found := f.dequeueBundles(f.node(opts, true), 100)
	require.GreaterOrEqual(t, len(found), len(after))
	rest := len(found) - len(after)
	require.Equal(t, idsOf(after), found[rest:])
	require.Subset(t, idsOf(before[dequeued:]), found[:rest], "what was dequeued does not come again")
	if what == 1 && opts.TailEvents == 0 { // events in tails are lost with the head
		require.Equal(t, idsOf(before[dequeued:]), found[:rest], "what is stored comes, though the head has lost it")
	}
	report, err = f.checkMailbox(f.actor, true)
	require.NoError(t, err)
	require.True(t, report.Clean(), "%v", report.Findings)
}

func (f *failover) readGates() map[domain.Group]*gate {
	gates := make(map[domain.Group]*gate)
	require.NoError(f, f.node(f.opts, false).beginCall("test").readGates(f.Context(), f.actor, allGroups, gates))
	return gates
}

func TestFailover_OfOneDrawerLosesNothing(t *testing.T) {
	for _, tails := range []int{0, 4} {
		synctest.Test(t, func(t *testing.T) {
			f := newFailover(t, embedded.Options{}, Options{Exclusive: true, SweepEvery: -1, TailEvents: tails})
			node := f.node(f.opts, true)
			before := repositorytest.Events(20, f.actor)
			f.saveEvents(node, before[:6], 1)
			past := f.listPartitions(2)[1]
			f.saveEvents(node, before[6:], 1)
			f.restorePartition(past)
			after := repositorytest.Events(12, f.actor)
			f.saveEvents(f.node(f.opts, true), after, 1)
			require.Equal(t, append(idsOf(before), idsOf(after)...), f.dequeueBundles(f.node(f.opts, true), 100))
			require.NoError(t, f.repairAndCheck())
		})
	}
}

// repairAndCheck repairs the store and returns an error if a further check has findings.
func (f *failover) repairAndCheck() error {
	report, err := f.checkMailbox(f.actor, true)
	if err == nil && !report.Clean() {
		err = fmt.Errorf("%v", report.Findings)
	}
	return err
}

func TestFailover_IsNoticedByARunningNode(t *testing.T) {
	for _, stale := range []bool{false, true} {
		t.Run(fmt.Sprintf("reads may be stale: %v", stale), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				account := embedded.Options{}
				if stale {
					account.Stale = func() int { return 0 }
				}
				f := newFailover(t, account, Options{SweepEvery: -1, TailEvents: 8})
				node := f.node(f.opts, true)
				before := repositorytest.Events(30, f.actor)
				f.saveEvents(node, before[:10], 1)
				past := f.listPartitions(3)
				f.saveEvents(node, before[10:], 1)
				require.Len(t, f.dequeueBundles(node, 100), 30)
				for _, p := range past {
					f.restorePartition(p)
				}
				after := repositorytest.Events(12, f.actor)
				f.saveEvents(node, after, 1)
				require.Equal(t, idsOf(after), f.dequeueBundles(node, 100))
				report, err := f.checkMailbox(f.actor, true)
				require.NoError(t, err)
				require.True(t, report.Clean(), "%v", report.Findings)
			})
		})
	}
}

func TestFirstSave_ReadsAGateAndLooksForDrawersAhead(t *testing.T) {
	f := newFailover(t, embedded.Options{Consistency: "Strong"}, Options{Exclusive: true, SweepEvery: -1, TailEvents: 8})
	f.saveEvents(f.node(f.opts, false), repositorytest.Events(2, f.actor), 1)
	node := f.node(f.opts, false)
	count := func() int {
		before := f.line.Calls()
		f.saveEvents(node, repositorytest.Events(1, f.actor), 1)
		return f.line.Calls() - before
	}
	units := f.engine.RequestUnits()
	cold := count()
	coldUnits := f.engine.RequestUnits() - units
	warm := count()
	warmUnits := f.engine.RequestUnits() - units - coldUnits
	t.Logf("%.2f RU, then %.2f RU", coldUnits, warmUnits)
	require.LessOrEqual(t, coldUnits, warmUnits+7, "two point reads, doubled on a Strong account, and a query")
	require.Equal(t, 4, cold, "the head, the gate, the drawers ahead, and the write")
	require.Equal(t, 1, warm)
}

// newStoreInFront returns a store with a gate in front of its head.
func newStoreInFront(t *testing.T, opts Options) *failover {
	f := newFailover(t, embedded.Options{}, opts)
	node := f.node(opts, true)
	before := repositorytest.Events(11, f.actor)
	f.saveEvents(node, before[:5], 1)
	past := f.listPartitions(2)
	f.saveEvents(node, before[5:], 3)
	require.Len(t, f.dequeueBundles(node, 100), 11)
	for _, p := range past {
		f.restorePartition(p)
	}
	return f
}

func TestRaise_MayStopAtAnyRequest(t *testing.T) {
	stopAtEachRequest(t, 10, false, func(t *testing.T) (*failover, func(*Repository) error, func(int)) {
		f := newStoreInFront(t, Options{Exclusive: true, SweepEvery: -1, DrawerCapacity: 4, TailEvents: 3})
		after := repositorytest.Events(8, f.actor)
		return f, f.saveStepByStep(after[:2]), func(n int) { f.continueSaving(n, nil, after) }
	})
}

// stopAtEachRequest stops a node at its n-th request, before or after that request is applied, for n from
// 1 until the node makes fewer than n requests. The last n must be above least. open returns a new store,
// the calls that the node makes, and a check by other nodes after the stop.
func stopAtEachRequest(t *testing.T, least int, skip bool, open func(*testing.T) (f *failover, act func(*Repository) error, holds func(n int))) {
	t.Helper()
	for _, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		if skip || raced && fault == faulty.ReplyLostAfter {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			for n := 1; ; n++ {
				f, act, holds := open(t)
				once := f.opts
				once.Retries = -1
				node := f.node(once, false)
				f.line.CrashAt(n, fault)
				err := act(node)
				stopped := f.line.Fired() > 0
				f.line.Break(nil)
				holds(n)
				if !stopped {
					require.NoError(t, err)
					require.Greater(t, n, least)
					return
				}
			}
		})
	}
}

// saveStepByStep saves events through a node without retries, so that each Save performs one step of a
// raise.
func (f *failover) saveStepByStep(events []domain.Event) func(*Repository) error {
	return func(node *Repository) (err error) {
		for range 5 {
			if _, err = node.Save(f.t.Context(), f.actor, events); f.line.Fired() > 0 {
				break
			}
		}
		return err
	}
}

// continueSaving is called when a node has stopped at its n-th request. It saves the events in after
// through other nodes, and requires that they are delivered after the stored events.
func (f *failover) continueSaving(n int, stored, after []domain.Event) {
	f.t.Helper()
	other := f.node(f.opts, true)
	_, err := other.Save(f.t.Context(), f.actor, after[:2])
	require.NoError(f.t, err)
	f.saveEvents(f.node(f.opts, false), after[2:], 1)
	require.Equal(f.t, append(idsOf(stored), idsOf(after)...), f.dequeueBundles(other, 100), "stopped at request %d", n)
	report, err := f.checkMailbox(f.actor, true)
	require.NoError(f.t, err)
	require.True(f.t, report.Clean(), "stopped at request %d: %v", n, report.Findings)
}

func TestRaise_ByTwoNodesAtOnceHappensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n := 1; ; n++ {
			f := newStoreInFront(t, Options{SweepEvery: -1, DrawerCapacity: 4, TailEvents: 3})
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
				require.Equal(t, idsOf(after[4:]), found)
				require.Greater(t, n, 10)
				return
			}
			require.ElementsMatch(t, idsOf(after), found, "before request %d", n)
			report, err := f.checkMailbox(f.actor, true)
			require.NoError(t, err)
			require.True(t, report.Clean(), "before request %d: %v", n, report.Findings)
		}
	})
}

func TestFailover_VoidsTheDrawersThatAPeekRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{}, Options{SweepEvery: -1, DrawerCapacity: 4})
		node, other := f.node(f.opts, true), f.node(f.opts, true)
		before := repositorytest.Events(30, f.actor)
		f.saveEvents(node, before[:6], 2)
		past := f.listPartitions(3)
		f.saveEvents(node, before[6:], 4)
		_, err := other.NextUnacknowledged(t.Context(), f.actor, allGroups)
		require.NoError(t, err)
		require.Len(t, other.known.sealedExtents(f.main, 1), 7)
		for _, p := range past {
			f.restorePartition(p)
		}
		after := repositorytest.Events(12, f.actor)
		f.saveEvents(f.node(f.opts, true), after, 1)
		require.Equal(t, append(idsOf(before[:6]), idsOf(after)...), f.dequeueBundles(other, 100))
	})
}
