package cosmos

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

const day = 24 * time.Hour

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestAFloorRisesWhenAMilestoneIsOldEnough(t *testing.T) {
	const grace = 8 * time.Hour
	type step struct {
		after      time.Duration // time since noon of a fixed day
		last       cabinetState
		at         position
		floor      int
		milestones []int // expected ordinals of the milestones
	}
	filling := func(ordinal, fill int, total int64) cabinetState {
		return cabinetState{Drawer: "d", Ordinal: ordinal, Fill: fill, Sequence: domain.Sequence(total), Total: total}
	}
	at := func(ordinal, slot int, total int64) position {
		return position{Ordinal: ordinal, Slot: slot, Sequence: domain.Sequence(total), Total: total}
	}
	for _, tc := range []struct {
		name  string
		steps []step
	}{
		{"nothing acknowledged, nothing marked", []step{{0, filling(3, 1, 21), position{}, 1, nil}}},
		{"the drawer that the gate stands in stays", []step{
			{0, filling(3, 5, 25), at(2, 4, 14), 1, []int{2}},
			{grace - time.Millisecond, filling(3, 5, 25), at(2, 4, 14), 1, []int{2}},
			{grace, filling(3, 5, 25), at(2, 4, 14), 2, nil},
			{10 * grace, filling(3, 5, 25), at(2, 4, 14), 2, nil},
		}},
		{"all goes when all is acknowledged and nothing comes", []step{
			{0, filling(3, 5, 25), at(3, 5, 25), 1, []int{4}},
			{grace, filling(3, 5, 25), at(3, 5, 25), 4, nil},
		}},
		{"a drawer that is filled on after its milestone stays", []step{
			{0, filling(3, 5, 25), at(3, 5, 25), 1, []int{4}},
			{grace - time.Millisecond, filling(3, 6, 26), at(3, 6, 26), 1, []int{3, 4}},
			{grace, filling(3, 6, 26), at(3, 6, 26), 3, []int{4}},
			{2*grace - 2*time.Millisecond, filling(3, 6, 26), at(3, 6, 26), 3, []int{4}},
			{2 * grace, filling(3, 6, 26), at(3, 6, 26), 4, nil},
		}},
		{"milestones come a quarter of the time apart", []step{
			{0, filling(9, 1, 81), at(2, 0, 10), 1, []int{2}},
			{grace / 8, filling(9, 1, 81), at(3, 0, 20), 1, []int{2}},
			{grace / 4, filling(9, 1, 81), at(4, 0, 30), 1, []int{2, 4}},
			{grace / 2, filling(9, 1, 81), at(5, 0, 40), 1, []int{2, 4, 5}},
			{grace, filling(9, 1, 81), at(6, 0, 50), 2, []int{4, 5, 6}},
			{grace + grace/4, filling(9, 1, 81), at(6, 0, 50), 4, []int{5, 6}},
		}},
		{"a gate that was moved back holds the floor, and the retention of events that it passes again restarts", []step{
			{0, filling(9, 1, 81), at(4, 0, 30), 1, []int{4}},
			{grace - time.Millisecond, filling(9, 1, 81), at(2, 0, 10), 1, []int{2}},
			{grace, filling(9, 1, 81), at(2, 0, 10), 2, nil},
			{2 * grace, filling(9, 1, 81), at(4, 0, 30), 2, []int{4}},
			{3 * grace, filling(9, 1, 81), at(4, 0, 30), 4, nil},
		}},
		{"a clock that was ahead does not hold things for ever", []step{
			{100 * grace, filling(3, 1, 21), at(2, 4, 14), 1, []int{2}},
			{0, filling(3, 1, 21), at(2, 4, 14), 1, []int{2}},
			{grace, filling(3, 1, 21), at(2, 4, 14), 2, nil},
		}},
		{"what a rollback has left empty goes, too", []step{
			{0, cabinetState{Ordinal: 2}, position{}, 1, []int{3}},
			{grace, cabinetState{Ordinal: 2}, position{}, 3, nil},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r retained
			for i, s := range tc.steps {
				r = r.advanceTo(s.last, s.at, noon.Add(s.after), grace)
				var milestones []int
				for _, m := range r.Milestones {
					milestones = append(milestones, m.Below)
				}
				require.Equal(t, s.floor, max(r.Floor, 1), "step %d: %+v", i, r)
				require.Equal(t, s.milestones, milestones, "step %d: %+v", i, r)
			}
		})
	}
}

// A keeper is a node with one actor and a clock that a test advances.
type keeper struct {
	*testing.T
	*rig
	node  *Repository
	actor domain.ActorID
	now   *atomic.Int64 // time since noon of a fixed day
}

func newKeeper(t *testing.T, capacity int) *keeper { return newKeeperFor(t, capacity, 0) }

func newKeeperFor(t *testing.T, capacity int, retention time.Duration) *keeper {
	return newKeeperWith(t, Options{DrawerCapacity: capacity, Retention: retention})
}

func newKeeperWith(t *testing.T, opts Options) *keeper {
	return newKeeperOn(t, embedded.Options{}, opts)
}

// newKeeperOn returns a keeper on an engine with the given options. The engine uses the clock of the
// keeper.
func newKeeperOn(t *testing.T, engine embedded.Options, opts Options) *keeper {
	k := &keeper{T: t, actor: repositorytest.NewActor(), now: new(atomic.Int64)}
	engine.Clock = k.clock
	k.rig = newRig(t, engine)
	opts.SweepEvery, opts.Clock = -1, k.clock
	k.node = k.rig.node(opts, true)
	return k
}

func (k *keeper) clock() time.Time { return noon.Add(time.Duration(k.now.Load())) }

func (k *keeper) passTime(d time.Duration) { k.now.Add(int64(d)) }

func (k *keeper) saveEvents(n int, opts ...repositorytest.Change) []domain.Event {
	events := repositorytest.Events(n, k.actor, opts...)
	saved, err := k.node.Save(k.Context(), k.actor, events)
	require.NoError(k, err)
	require.Equal(k, n, saved.Accepted)
	return events
}

func (k *keeper) takeBundle() repositorytest.PeekedBundle {
	b, err := repositorytest.Peek(k.Context(), k.stores(k.node), k.actor, allGroups, domain.BundleID{})
	require.NoError(k, err)
	_, err = k.node.Acknowledge(k.Context(), k.actor, b.ID)
	require.NoError(k, err)
	k.node.AwaitHints(k.Context(), k.actor)
	return b
}

func (k *keeper) runSweep() Swept {
	swept, err := k.node.Sweep(k.Context())
	require.NoError(k, err)
	return swept
}

// expireDocuments makes the engine remove documents whose time to live has passed.
func (k *keeper) expireDocuments() {
	_, err := k.engine.Sweep(k.Context())
	require.NoError(k, err)
}

// countStored returns the number of stored documents and their total size in bytes.
func (k *keeper) countStored() (documents, bytes int) {
	for _, c := range Containers() {
		container, err := k.node.db.Container(c.Name)
		require.NoError(k, err)
		q := k.node.beginCall("test").QueryAllPartitions(container, "", "SELECT * FROM c")
		for !q.IsDone() {
			items, err := q.Next(k.Context(), 1000)
			require.NoError(k, err)
			for _, item := range items {
				documents++
				bytes += len(item)
			}
		}
	}
	return documents, bytes
}

func TestAcknowledgedEvents_AreRemovedAfterTheRetention(t *testing.T) {
	eachTail(t, func(t *testing.T, tails int) {
		k := newKeeperWith(t, Options{DrawerCapacity: 3, TailEvents: tails})
		events := k.saveEvents(7, repositorytest.WithPayload(`{"kWh":1}`))
		payloads := k.node.beginCall("test")
		first, err := payloads.readExtents(t.Context(), events[0].Cabinet(), cabinetState{Ordinal: 3}, 1, 0)
		require.NoError(t, err)
		require.Len(t, first, 3)
		b := k.takeBundle()
		require.Equal(t, 7, b.Count)

		k.runSweep()
		k.passTime(7*day - time.Millisecond)
		require.Zero(t, k.runSweep().Drawers)
		again, err := k.node.Save(t.Context(), k.actor, events)
		require.NoError(t, err)
		require.Equal(t, 7, again.Duplicates, "H2: what is sent again is known for seven days")

		k.passTime(time.Millisecond)
		require.Equal(t, 3, k.runSweep().Drawers)
		require.NoError(t, k.repairMailbox(k.actor))
		documents, _ := k.countStored()
		require.LessOrEqual(t, documents, 3, "the head and the gate, for the closed bundle has expired as well; and the groups")
		for _, e := range b.Events {
			_, err := k.content.Open(t.Context(), e.PayloadAt)
			require.Equal(t, domain.NotFound, domain.KindOf(err))
		}
		_, err = k.node.NextUnacknowledged(t.Context(), k.actor, allGroups)
		require.ErrorIs(t, err, domain.ErrNoData)

		more := k.saveEvents(2)
		next := k.takeBundle()
		require.Equal(t, more[0].ID, next.Events[0].ID)
		require.Greater(t, next.First, b.Last, "H3: numbers are not used again")
		require.NoError(t, k.repairMailbox(k.actor))
	})
}

func TestSweep_RemovesNothingUnacknowledged(t *testing.T) {
	eachTail(t, func(t *testing.T, tails int) {
		k := newKeeperWith(t, Options{DrawerCapacity: 3, TailEvents: tails})
		events := k.saveEvents(4, repositorytest.WithoutBundling)
		events = append(events, k.saveEvents(9, repositorytest.WithoutBundling)...)
		var delivered []domain.EventID
		for range 5 { // these Dequeues move the gate's position into the second drawer
			delivered = append(delivered, k.takeBundle().Events[0].ID)
		}
		open, err := repositorytest.Peek(t.Context(), k.stores(k.node), k.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		for range 10 {
			k.passTime(30 * day)
			k.runSweep()
		}
		require.NoError(t, k.auditMailbox(k.actor))
		again, err := repositorytest.Peek(t.Context(), k.stores(k.node), k.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		require.Equal(t, open.ID, again.ID, "an open bundle stays open for ever")
		for range 8 {
			delivered = append(delivered, k.takeBundle().Events[0].ID)
		}
		for i := range events {
			require.Equal(t, events[i].ID, delivered[i])
		}
	})
}

func TestAClosedBundleExpiresAndItsIdIsFreeAgain(t *testing.T) {
	eachTail(t, func(t *testing.T, tails int) {
		k := newKeeperWith(t, Options{DrawerCapacity: 3, TailEvents: tails})
		k.saveEvents(1)
		b := k.takeBundle()
		require.NotZero(t, b.ID)
		k.passTime(7*day + 2*time.Second)
		k.expireDocuments()
		_, err := k.node.Acknowledge(t.Context(), k.actor, b.ID)
		require.Equal(t, domain.NotFound, domain.KindOf(err), "as before")
		k.saveEvents(1)
		again, err := repositorytest.Peek(t.Context(), k.stores(k.node), k.actor, allGroups, b.ID)
		require.NoError(t, err)
		require.Equal(t, b.ID, again.ID)
	})
}

func TestTheIndexOfAnotherNode_ForgetsRemovedDrawers(t *testing.T) {
	eachTail(t, func(t *testing.T, tails int) {
		k := newKeeperWith(t, Options{DrawerCapacity: 3, TailEvents: tails})
		other := k.rig.node(Options{DrawerCapacity: 3, TailEvents: tails, Retention: 1, Clock: k.clock}, false)
		events := k.saveEvents(9)
		_, err := other.Save(t.Context(), k.actor, repositorytest.Events(1, k.actor)) // this Save loads all ids into the memory of the second node
		require.NoError(t, err)
		k.takeBundle()
		k.passTime(time.Second)
		_, err = k.rig.node(Options{Retention: 1, Clock: k.clock}, false).Sweep(t.Context())
		require.NoError(t, err)
		saved, err := other.Save(t.Context(), k.actor, events[:3])
		require.NoError(t, err)
		require.Equal(t, 3, saved.Accepted, "they were forgotten, and are new")
		require.Equal(t, 3, k.takeBundle().Count)
		require.NoError(t, k.repairMailbox(k.actor))
	})
}

func TestASaveInFlight_ContinuesWhenTheRetentionChanges(t *testing.T) {
	s := newTrust(t)
	node, line := s.tappedNode(Options{DrawerCapacity: 3, SweepEvery: -1})
	s.save(node, 0, repositorytest.Events(7, s.actor))
	_, err := repositorytest.Drain(t.Context(), s.stores(node), s.actor, allGroups)
	require.NoError(t, err)
	sweeper := s.node(Options{DrawerCapacity: 3, Retention: 1}, false)
	line.setBefore(atNth(2, isHeadReplacement, func() error { // the commit
		swept, err := sweeper.Sweep(context.Background())
		require.NoError(t, err)
		require.Positive(t, swept.Drawers)
		return nil
	}))
	more := repositorytest.Events(2, s.actor)
	saved, err := node.Save(t.Context(), s.actor, more)
	require.NoError(t, err)
	require.Equal(t, 2, saved.Accepted)
	require.Zero(t, counterValue(t, node.metrics.repairs.WithLabelValues("rollback")))
	drained, err := repositorytest.Drain(t.Context(), s.stores(node), s.actor, allGroups)
	require.NoError(t, err)
	require.Equal(t, more[0].ID, drained[0].Events[0].ID)
	require.NoError(t, s.repairMailbox(s.actor))
}

// The reply to a commit is lost. Before the writer reads the head again, a sweep closes a drawer of
// another cabinet. The Save must continue from the stored head.
func TestACommitWithALostReply_ContinuesFromTheStoredHead(t *testing.T) {
	s := newTrust(t)
	node, line := s.tappedNode(Options{DrawerCapacity: 3, SweepEvery: -1})
	s.save(node, 0, repositorytest.Events(4, s.actor))
	_, err := repositorytest.Drain(t.Context(), s.stores(node), s.actor, allGroups)
	require.NoError(t, err)
	sweeper := s.node(Options{DrawerCapacity: 3, Retention: 1}, false)
	commit := atNth(2, isHeadReplacement, func() error { return faulty.ErrLost })
	s.line.Break(func(_ int, req *http.Request) faulty.Fault {
		if commit(req) != nil {
			return faulty.ReplyLostAfter
		}
		return faulty.None
	})
	line.setBefore(atNth(3, isHeadReplacement, func() error { // this function runs before the repeated commit
		swept, err := sweeper.Sweep(context.Background())
		require.NoError(t, err)
		require.Equal(t, 2, swept.Drawers)
		return nil
	}))
	elsewhere := repositorytest.WithOrigin(domain.Charges)
	_, err = node.Save(t.Context(), s.actor, repositorytest.Events(1, s.actor, elsewhere))
	require.NoError(t, err)
	require.Equal(t, 1, s.line.Fired())
	_, err = node.Save(t.Context(), s.actor, repositorytest.Events(1, s.actor, elsewhere))
	require.NoError(t, err)
	saved, err := node.Save(t.Context(), s.actor, repositorytest.Events(2, s.actor))
	require.NoError(t, err, "its drawer is gone, and it goes on in another")
	require.Equal(t, 2, saved.Accepted)
	drained, err := repositorytest.Drain(t.Context(), s.stores(node), s.actor, allGroups)
	require.NoError(t, err)
	require.Len(t, drained, 2)
	require.NoError(t, s.repairMailbox(s.actor))
}

func TestUnlimitedRetention_RemovesNothing(t *testing.T) {
	k := newKeeperFor(t, 3, -1)
	k.saveEvents(9)
	k.takeBundle()
	before, _ := k.countStored()
	k.passTime(1000 * day)
	k.expireDocuments()
	require.Equal(t, Swept{}, k.runSweep())
	after, _ := k.countStored()
	require.Equal(t, before, after)
}

// Over thirty days, a hub receives and delivers MESSAGEHUB_RETENTION_EVENTS events a day. The amount of
// stored data must not grow.
func TestStoredData_DoesNotGrowInSteadyUse(t *testing.T) {
	t.Parallel()
	perDay, capacity := 2000, 100
	if raced {
		perDay, capacity = 500, 25
	}
	if n, err := strconv.Atoi(os.Getenv("MESSAGEHUB_RETENTION_EVENTS")); err == nil {
		perDay, capacity = n, 10_000
	}
	k := newKeeper(t, capacity)
	var documents, bytes [31]int
	for d := range documents {
		for hour := range 4 {
			for n := 0; n < perDay/4; {
				batch := min(1000, perDay/4-n)
				k.saveEvents(batch)
				n += batch
			}
			for {
				_, err := k.node.NextUnacknowledged(t.Context(), k.actor, allGroups)
				if errors.Is(err, domain.ErrNoData) {
					break
				}
				require.NoError(t, err)
				k.takeBundle()
			}
			k.passTime(6 * time.Hour)
			k.runSweep()
			if hour == 3 {
				k.expireDocuments()
			}
		}
		documents[d], bytes[d] = k.countStored()
		t.Logf("day %2d: %7d documents, %10d bytes", d+1, documents[d], bytes[d])
	}
	// Sweeps remove drawers about every quarter of the retention, so the amount of data varies from day
	// to day. The test compares the maxima of two periods of about ten days.
	early, late := slices.Max(documents[8:18]), slices.Max(documents[21:])
	require.LessOrEqual(t, late, early+early/50)
	early, late = slices.Max(bytes[8:18]), slices.Max(bytes[21:])
	require.LessOrEqual(t, late, early+early/50)
	require.NoError(t, k.repairMailbox(k.actor))
}

func TestACommitThatReadsAnOldHeadWaitsForANewerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lag = 500 * time.Millisecond
		var old atomic.Bool
		s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Lag: func() time.Duration {
			if old.Load() {
				return lag
			}
			return 0
		}})}
		node, line := s.tappedNode(Options{DrawerCapacity: 3, SweepEvery: -1})
		s.save(node, 0, repositorytest.Events(7, s.actor))
		_, err := repositorytest.Drain(t.Context(), s.stores(node), s.actor, allGroups)
		require.NoError(t, err)
		sweeper := s.node(Options{DrawerCapacity: 3, Retention: 1}, false)
		var calls atomic.Int32
		commits := atNth(2, isHeadReplacement, func() error {
			client.Sleep(t.Context(), 2*lag) // wait until the head with the intent is visible even to stale reads
			_, err := sweeper.Sweep(t.Context())
			require.NoError(t, err)
			old.Store(true)
			return nil
		})
		line.setBefore(func(req *http.Request) error {
			if calls.Add(1) > 1000 {
				return faulty.ErrLost
			}
			return commits(req)
		})
		saved, err := node.Save(t.Context(), s.actor, repositorytest.Events(2, s.actor))
		require.NoError(t, err)
		require.Equal(t, 2, saved.Accepted)
		require.Zero(t, counterValue(t, node.metrics.repairs.WithLabelValues("rollback")))
		require.Less(t, calls.Load(), int32(100))
	})
}
