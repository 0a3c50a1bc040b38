package cosmos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// readHead reads the head of the keeper's actor.
func (k *keeper) readHead() *head {
	h, err := k.node.beginCall("test").readHead(k.Context(), k.actor)
	require.NoError(k, err)
	return h
}

// readGates reads the gates of the keeper's actor.
func (k *keeper) readGates() map[domain.Group]*gate {
	gates := make(map[domain.Group]*gate)
	require.NoError(k, k.node.beginCall("test").readGates(k.Context(), k.actor, allGroups, gates))
	return gates
}

// dequeueAll peeks and dequeues until no event waits.
func (k *keeper) dequeueAll() []repositorytest.PeekedBundle {
	all, err := repositorytest.Drain(k.Context(), k.stores(k.node), k.actor, allGroups)
	require.NoError(k, err)
	k.node.AwaitHints(k.Context(), k.actor)
	return all
}

// sweepAcknowledged advances the clock and sweeps until all acknowledged events have been removed.
func (k *keeper) sweepAcknowledged() {
	k.runSweep()
	for range 4 {
		k.passTime(9 * day)
		k.runSweep()
	}
}

func TestCabinet_IsRemovedAfterAllItsEvents(t *testing.T) {
	for tails, opts := range map[string]Options{"with tails": {TailEvents: DefaultTailEvents}, "without tails": {}} {
		t.Run(tails, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t, 3)
			opts.DrawerCapacity, opts.SweepEvery, opts.Clock = 3, -1, k.clock
			k.node = k.rig.node(opts, true)
			k.saveEvents(1, repositorytest.WithContentType("stays"))
			empty := len(client.Encode(k.readHead()))
			var events []domain.Event
			for life := range 3 {
				for kind := range 20 {
					events = append(events, k.saveEvents(4, repositorytest.WithContentType(fmt.Sprint("comes-and-goes-", kind)))...)
				}
				k.saveEvents(1, repositorytest.WithOrigin(domain.Charges))
				require.Len(t, k.readHead().Cabinets, 22)
				if life > 0 {
					require.NoError(t, k.auditMailbox(k.actor))
				}
				k.dequeueAll()
				k.saveEvents(1, repositorytest.WithContentType("stays"))
				k.sweepAcknowledged()
				h := k.readHead()
				require.Len(t, h.Cabinets, 1, "life %d", life)
				require.Less(t, len(client.Encode(h)), empty+600)
				require.Equal(t, removalFormat, h.StoredFormat, "an older version would use the ordinals again")
				require.Equal(t, 2*(life+1), h.RemovedOrdinal, "each life has two drawers")
				for _, g := range k.readGates() {
					require.LessOrEqual(t, len(g.At), 1)
				}
				require.NoError(t, k.auditMailbox(k.actor))
				report, err := k.node.Check(t.Context(), CheckOptions{})
				require.NoError(t, err)
				require.Empty(t, report.Findings)
			}
			require.Equal(t, 3*21.0, testutil.ToFloat64(k.node.metrics.swept.WithLabelValues("cabinet")))
			again, err := k.node.Save(t.Context(), k.actor, events[:4])
			require.NoError(t, err)
			require.Equal(t, 4, again.Accepted, "they are new again, after the retention")
			require.Equal(t, 5, k.dequeueAllEvents())
			require.NoError(t, k.repairMailbox(k.actor))
		})
	}
}

// dequeueAllEvents dequeues all events and returns their number.
func (k *keeper) dequeueAllEvents() int {
	n := 0
	for _, b := range k.dequeueAll() {
		n += b.Count
	}
	return n
}

func TestCabinet_RemainsWhileItIsInUse(t *testing.T) {
	for name, leave := range map[string]func(k *keeper){
		"an event waits": func(k *keeper) {
			k.saveEvents(1)
			for range 9 {
				k.passTime(9 * day)
				k.runSweep()
			}
		},
		"an event was dequeued within the retention": func(k *keeper) {
			k.saveEvents(1)
			k.dequeueAll()
			for range 6 {
				k.passTime(day)
				k.runSweep()
			}
		},
		"its actor is frozen": func(k *keeper) {
			k.saveEvents(1)
			k.dequeueAll()
			require.NoError(k, k.node.Freeze(k.Context(), k.actor, becauseOfATest))
			k.sweepAcknowledged()
		},
		"a Save begins a cabinet": func(k *keeper) {
			k.saveEvents(1)
			k.dequeueAll()
			k.runSweep()
			k.passTime(9 * day)
			k.runSweep()
			h := k.readHead()
			other := repositorytest.Event(k.actor, repositorytest.WithContentType("another"))
			w := newWriter(k.node, k.actor)
			w.head = h
			p := w.makePlan(h, []numberedEvent{{Event: &other, digest: other.Digest()}})
			require.NoError(k, w.storeIntent(k.Context(), k.node.beginCall("test"), h, p))
			k.runSweep()
		},
		"it is to be kept": func(k *keeper) {
			k.node.opts.KeepCabinets = true
			k.saveEvents(1)
			k.dequeueAll()
			k.sweepAcknowledged()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t, 3)
			leave(k)
			require.Len(t, k.readHead().Cabinets, 1)
		})
	}
}

func TestReplay_RefusesABundleOfARemovedCabinet(t *testing.T) {
	k := newKeeper(t, 3)
	k.rig = newRig(t, embedded.Options{}) // the clock of the engine does not advance, so the bundle does not expire
	k.node = k.rig.node(Options{DrawerCapacity: 3, SweepEvery: -1, Clock: k.clock}, true)
	b := k.saveEvents(1)[0]
	dequeued := k.takeBundle()
	group, err := domain.DefaultGroups().GroupOf(b.Origin)
	require.NoError(t, err)
	refused := func() {
		t.Helper()
		_, err := k.node.Replay(t.Context(), k.actor, group, becauseOfATest)
		require.Equal(t, domain.NotFound, domain.KindOf(err), "%v", err)
	}
	k.runSweep()
	for range 3 {
		k.passTime(9 * day)
		k.runSweep()
		refused()
	}
	require.Empty(t, k.readHead().Cabinets)
	require.NotEqual(t, dequeued.Events[0].ID, k.saveEvents(1)[0].ID)
	refused()
	require.Equal(t, 1, k.dequeueAllEvents())
}

// TestStaleHead_BringsNoAcknowledgedEventBack compares every head that was ever stored with all later
// gates. A cabinet must be a candidate for a bundle if and only if one of its events waits in that head.
// The candidate must start at its first waiting event.
func TestStaleHead_BringsNoAcknowledgedEventBack(t *testing.T) {
	rounds := 150
	if raced {
		rounds = 30
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			k := newKeeper(t, 2)
			k.node = k.rig.node(Options{DrawerCapacity: 2, SweepEvery: -1, Clock: k.clock, TailEvents: int(seed%2) * 4}, true)
			var heads []*head
			through := make(map[cabinetName]domain.Sequence) // highest acknowledged number of each cabinet
			waiting := make(map[cabinetName][]domain.Sequence)
			most := 0
			for range rounds {
				before := k.readHead().Watermark
				switch rng.IntN(4) {
				case 0:
					kind := repositorytest.WithContentType(fmt.Sprint("kind-", rng.IntN(5)))
					origin := []domain.Origin{domain.TimeSeries, domain.Charges}[rng.IntN(2)]
					n := 1 + rng.IntN(3)
					e := k.saveEvents(n, kind, repositorytest.WithOrigin(origin))
					for i := range n {
						name := nameOf(e[i].Cabinet())
						waiting[name] = append(waiting[name], before+domain.Sequence(i)+1)
					}
				case 1:
					for range rng.IntN(3) {
						b, err := repositorytest.Peek(t.Context(), k.stores(k.node), k.actor, allGroups, domain.BundleID{})
						if err != nil {
							require.ErrorIs(t, err, domain.ErrNoData)
							break
						}
						_, err = k.node.Acknowledge(t.Context(), k.actor, b.ID)
						require.NoError(t, err)
						name := nameOf(b.Cabinet)
						require.Equal(t, waiting[name][0], b.First)
						through[name], waiting[name] = b.Last, waiting[name][b.Count:]
					}
				default:
					k.passTime(time.Duration(rng.IntN(9)) * day)
					k.runSweep()
				}
				heads = append(heads, k.readHead())
				most = max(most, k.readHead().RemovedOrdinal)
				gates := k.readGates()
				for _, h := range heads {
					for name, last := range h.Cabinets {
						group, err := k.node.groupOf(name)
						require.NoError(t, err)
						at := gates[group].positionIn(name, last)
						waits := len(waiting[name]) > 0 && waiting[name][0] <= last.Sequence
						require.Equal(t, waits, last.Sequence > at.Sequence, "%s: %+v, gate %+v, %v wait", name, last, at, waiting[name])
						if waits {
							require.GreaterOrEqual(t, at.Sequence, through[name])
							require.Less(t, at.Sequence, waiting[name][0])
						}
					}
				}
			}
			require.Positive(t, most, "no cabinet was removed")
			drained := k.dequeueAll()
			for name, numbers := range maps.All(waiting) {
				n := 0
				for _, b := range drained {
					if nameOf(b.Cabinet) == name {
						n += b.Count
					}
				}
				require.Equal(t, len(numbers), n, name)
			}
			require.NoError(t, k.repairMailbox(k.actor))
		})
	}
}

// afterSweeps acknowledges all events and sweeps several times. The first sweep deletes the drawers of
// the cabinet, the second removes the cabinet from the head, the third removes its position from the
// gate.
func afterSweeps(sweeps int) func(w *world) {
	return func(w *world) {
		withAcknowledged(5)(w)
		node := w.node(Options{DrawerCapacity: 2, Random: seeded(98), Retention: 1}, false)
		for range sweeps {
			_, err := node.beginCall("sweep").sweepRecipient(context.Background(), w.actor)
			require.NoError(w, err)
		}
		c := node.beginCall("test")
		h, err := c.readHead(w.Context(), w.actor)
		require.NoError(w, err)
		gates := make(map[domain.Group]*gate)
		require.NoError(w, c.readGates(w.Context(), w.actor, allGroups, gates))
		positions := 0
		for _, g := range gates {
			positions += len(g.At)
		}
		require.Len(w, h.Cabinets, max(0, 2-sweeps))
		require.Equal(w, min(1, 3-sweeps), positions)
	}
}

func TestRemoval_DisturbsNoCallInAnyOrder(t *testing.T) {
	savesAgain := party{name: "save and take", does: func(w *world, node *Repository) error {
		if err := w.saveEvents(node, repositorytest.Event(w.actor, repositorytest.WithoutBundling)); err != nil {
			return err
		}
		return w.takeBundle(node)
	}}
	savesAnother := party{name: "save of another kind", does: func(w *world, node *Repository) error {
		return w.saveEvents(node, repositorytest.Event(w.actor, repositorytest.WithContentType("another")))
	}}
	losing := func(p party, n int) party { p.loses = n; return p }
	for _, tc := range []struct {
		name    string
		turns   int
		swept   int
		parties []party
	}{
		{"removal from the head, save of the same kind", 2, 1, []party{sweeps, savesAgain}},
		{"removal from the head, save of another kind", 2, 1, []party{sweeps, savesAnother}},
		{"removal from the head, whose answer is lost", 1, 1, []party{losing(sweeps, 1), savesAgain}},
		{"removal from the head, replay", 2, 1, []party{sweeps, replaysOne}},
		{"two removals", 2, 1, []party{sweeps, sweeps}},
		{"removal from the gate, save of the same kind", 2, 2, []party{sweeps, savesAgain}},
		{"removal from the gate, whose answer is lost", 1, 2, []party{losing(sweeps, 1), savesAgain}},
		{"removal from the gate, replay", 2, 2, []party{sweeps, replaysOne}},
		{"removal from the gate twice, and a save", 1, 2, []party{sweeps, sweeps, savesAgain}},
		{"nothing left, save of the same kind by two", 1, 3, []party{savesAgain, savesAnother}},
	} {
		turns := tc.turns
		if raced {
			turns = 1
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			everyOrder(t, turns, afterSweeps(tc.swept), tc.parties...)
		})
	}
}

// TestSave_AcceptsNewKindsOnceOldOnesAreGone saves the maximum number of kinds of events for a recipient.
// A node that refused one more kind accepts it after the removal, although the node has the old head in
// memory.
func TestSave_AcceptsNewKindsOnceOldOnesAreGone(t *testing.T) {
	k := newKeeper(t, 3)
	var kinds []domain.Event
	for n := range maxCabinets {
		kinds = append(kinds, repositorytest.Event(k.actor, repositorytest.WithContentType(fmt.Sprint("kind-", n))))
	}
	_, err := k.node.Save(t.Context(), k.actor, kinds)
	require.NoError(t, err)
	one := repositorytest.Event(k.actor, repositorytest.WithContentType("one-too-many"))
	_, err = k.node.Save(t.Context(), k.actor, []domain.Event{one})
	require.Equal(t, domain.Invalid, domain.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "1000 kinds")
	_, err = k.node.Save(t.Context(), k.actor, []domain.Event{repositorytest.Event(k.actor, repositorytest.WithContentType("kind-999"))})
	require.NoError(t, err) // the node keeps the head that it wrote, in which all kinds are in use

	const gone = 5
	for range gone {
		require.Equal(t, 1, k.takeBundle().Count)
	}
	sweeper := k.rig.node(Options{SweepEvery: -1, Clock: k.clock}, false)
	for range 4 {
		_, err := sweeper.Sweep(t.Context())
		require.NoError(t, err)
		k.passTime(9 * day)
	}
	var others []domain.Event
	for n := range gone {
		others = append(others, repositorytest.Event(k.actor, repositorytest.WithContentType(fmt.Sprint("another-", n))))
	}
	saved, err := k.node.Save(t.Context(), k.actor, others)
	require.NoError(t, err)
	require.Equal(t, gone, saved.Accepted)
	require.Len(t, k.readHead().Cabinets, maxCabinets)
	_, err = k.node.Save(t.Context(), k.actor, []domain.Event{one})
	require.Equal(t, domain.Invalid, domain.KindOf(err), "%v", err)
}

// TestRemoval_SurvivesACrashAtEachRequest kills a node at each request of the sweeps that remove two
// cabinets, before and after the request is applied. Another node then saves to one of the cabinets,
// delivers the event, and continues the sweeps.
func TestRemoval_SurvivesACrashAtEachRequest(t *testing.T) {
	for _, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		for at, died := 1, true; died; at++ {
			k := newKeeper(t, 2)
			k.saveEvents(3)
			k.saveEvents(1, repositorytest.WithOrigin(domain.Charges))
			k.dequeueAll()
			k.runSweep()
			dying := k.rig.node(Options{DrawerCapacity: 2, SweepEvery: -1, Clock: k.clock, Retries: -1}, false)
			requests := 0
			died = false
			k.line.Break(func(int, *http.Request) faulty.Fault {
				if requests++; requests < at {
					return faulty.None
				}
				if died {
					return faulty.RequestLost
				}
				died = true
				return fault
			})
			for range 4 {
				k.passTime(9 * day)
				_, _ = dying.beginCall("sweep").sweepRecipient(t.Context(), k.actor)
			}
			k.line.Break(nil)
			h := k.readHead()
			k.saveEvents(1)
			require.NoError(t, k.auditMailbox(k.actor), "%s at request %d", fault, at)
			require.Equal(t, 1, k.dequeueAllEvents())
			k.sweepAcknowledged()
			require.Empty(t, k.readHead().Cabinets)
			require.GreaterOrEqual(t, k.readHead().RemovedOrdinal, h.RemovedOrdinal+1)
			for _, g := range k.readGates() {
				require.Empty(t, g.At)
			}
			require.NoError(t, k.repairMailbox(k.actor))
		}
	}
}

// TestFailover_ToBeforeARemovalLosesNothing restores a head from before cabinets were created and removed,
// but does not restore the gate. New events must have numbers above the positions that were removed from
// the gate.
func TestFailover_ToBeforeARemovalLosesNothing(t *testing.T) {
	k := newKeeper(t, 3)
	f := &failover{T: t, rig: k.rig, actor: k.actor, opts: Options{DrawerCapacity: 3, SweepEvery: -1, Clock: k.clock}}
	node := f.node(f.opts, false)
	var past partition
	for range 2 {
		past = f.readPartition(node.db.catalog, k.actor.String())
		k.saveEvents(5, repositorytest.WithContentType("comes-and-goes"))
		k.dequeueAll()
		k.sweepAcknowledged()
		require.Empty(t, k.readHead().Cabinets)
	}
	f.restorePartition(past)

	after := repositorytest.Events(3, k.actor, repositorytest.WithContentType("new"))
	after = append(after, repositorytest.Events(3, k.actor, repositorytest.WithContentType("comes-and-goes"))...)
	after = append(after, repositorytest.Events(3, k.actor)...)
	f.saveEvents(f.node(f.opts, true), after, 3)
	require.ElementsMatch(t, idsOf(after), f.dequeueBundles(f.node(f.opts, true), 100))
	report, err := f.checkMailbox(k.actor, true)
	require.NoError(t, err)
	require.True(t, report.Clean(), "%v", report.Findings)
}

// A large Save to an empty cabinet is in flight when a sweep removes this cabinet and another cabinet
// with higher ordinals.
func TestCabinet_IsNotRemovedUnderAnIntentToIt(t *testing.T) {
	k := newKeeper(t, 3)
	// This removal sets RemovedOrdinal in the head.
	k.saveEvents(1, repositorytest.WithContentType("zero"))
	k.dequeueAll()
	k.sweepAcknowledged()
	require.Positive(t, k.readHead().RemovedOrdinal)
	k.saveEvents(1)                                             // main
	k.saveEvents(10, repositorytest.WithContentType("another")) // four drawers
	k.dequeueAll()
	k.runSweep()
	e := repositorytest.Event(k.actor)
	main := nameOf(e.Cabinet())
	for range 3 {
		k.passTime(9 * day)
		h := k.readHead()
		if h.cabinetRetention(main).isGone(h.Cabinets[main]) {
			break
		}
		k.runSweep()
	}
	require.Len(t, k.readHead().Cabinets, 2)
	node, line := k.tappedNode(Options{DrawerCapacity: 3, SweepEvery: -1, Clock: k.clock})
	line.setBefore(atNth(2, isHeadReplacement, func() error { // the sweep runs before the commit
		_, err := k.node.Sweep(t.Context())
		h := k.readHead()
		t.Logf("removed up to %d, cabinets %v", h.RemovedOrdinal, h.Cabinets)
		return err
	}))
	events := repositorytest.Events(2, k.actor)
	saved, err := node.Save(t.Context(), k.actor, events)
	require.NoError(t, err)
	require.Equal(t, 2, saved.Accepted)
	t.Logf("%+v", k.readHead().Cabinets)
	require.Equal(t, 2, k.dequeueAllEvents())
	require.NoError(t, k.auditMailbox(k.actor))
}
