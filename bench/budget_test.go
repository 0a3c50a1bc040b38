package bench

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/domain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The budgets are today's costs plus a small margin. A change that raises a cost above its budget
// fails here. Request units do not depend on time.

func TestLifeOfAnEvent_StaysWithinItsBudget(t *testing.T) {
	for _, tc := range []struct {
		name                string
		batch               int
		standard            bool
		save, peek, dequeue float64
		cleanUp             float64
	}{
		{"batches of 125, pessimistic", 125, false, 0.33, 0.04, 0.045, 0.09},
		{"batches of 125, standard", 125, true, 0.33, 0.02, 0.045, 0.08},
		{"alone, pessimistic", 1, false, 12.5, 0.1, 0.06, 0.5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found, err := measureLife(t.Context(), hub, 1, tc.batch, tc.standard)
			require.NoError(t, err)
			require.LessOrEqual(t, found.save, tc.save, "save")
			require.LessOrEqual(t, found.peek, tc.peek, "peek")
			require.LessOrEqual(t, found.dequeue, tc.dequeue, "dequeue")
			require.LessOrEqual(t, found.cleanUp, tc.cleanUp, "clean-up")
			require.Positive(t, min(found.save, found.peek, found.dequeue, found.cleanUp), "each has been paid")
		})
	}
}

// openFastAccount opens an account without physics that has the hub's
// containers.
func openFastAccount(t *testing.T) *account.Account {
	t.Helper()
	a, err := account.Open(t.Context(), account.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	require.NoError(t, hub.Provision(t.Context(), a, perContainer))
	return a
}

func TestWorstPeek_CostsLittleMoreThanTheLimit(t *testing.T) {
	a, src := openFastAccount(t), eventSource{seed: 1}
	actor := src.newActor()
	events := src.newEvents(int(worstEvents), actor, 1)
	require.NoError(t, fillStore(t.Context(), hub, a, actor, events))
	var least cost
	ours, dequeued, err := fetchBundle(t.Context(), hub, a, actor, src.newID(), len(events), func() (err error) {
		least, err = measureLimitPeek(t.Context(), a, events[0].Cabinet())
		return err
	})
	require.NoError(t, err)
	require.LessOrEqual(t, dequeued.Units, 140.0)
	require.LessOrEqual(t, ours.Units, 1.03*least.Units)
	require.LessOrEqual(t, ours.Requests, least.Requests+1)
	require.LessOrEqual(t, ours.Units, 240.0)
}

func TestSaveOf10000Events_CostsLittleMoreThanItsPages(t *testing.T) {
	a, src := openFastAccount(t), eventSource{seed: 1}
	actor := src.newActor()
	events := src.newEvents(maxSaveEvents, actor, 1)
	line, bareLine := a.Line(), a.Line()
	s, err := hub.Open(t.Context(), a, line)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, saveAll(t.Context(), s, actor, events))
	s.Settle(t.Context(), actor)
	stored, err := readStored(t.Context(), a, events[0].Cabinet())
	require.NoError(t, err)
	before := line.Count()
	require.NoError(t, saveAll(t.Context(), s, actor, src.newEvents(maxSaveEvents, actor, 1)))
	s.Settle(t.Context(), actor)
	ours := line.Count().Since(before)

	beforehand, stop, err := openLimit(a, a.Unmetered())
	require.NoError(t, err)
	defer stop()
	prepared, err := beforehand.Prepare(t.Context(), stored)
	require.NoError(t, err)
	bare, stopBare, err := openLimit(a, bareLine)
	require.NoError(t, err)
	defer stopBare()
	least, err := measureCost(bareLine, func() error { return bare.Save(t.Context(), prepared) })
	require.NoError(t, err)
	const behind = 50 // request units for sealing the full drawer and writing its filter
	require.LessOrEqual(t, ours.Units, 1.03*least.Units+behind)
	require.LessOrEqual(t, ours.Requests, least.Requests)
	require.LessOrEqual(t, ours.Units, 210.0+behind)
}

func TestDrain_HasBundlesOfEqualSize(t *testing.T) {
	src := eventSource{seed: 1}
	events := drainEvents(&src, src.newActor(), 3)
	for i := range 3 {
		var filler domain.Filler
		for j, e := range events[i*drainBundle:] {
			if !filler.Take(&e, domain.Sequence(j)) {
				require.Equal(t, drainBundle, j)
				break
			}
		}
		require.True(t, filler.Full())
	}
}

func TestEventSource_RepeatsOnlyWithTheSameSeed(t *testing.T) {
	one, again, other := eventSource{seed: 1}, eventSource{seed: 1}, eventSource{seed: 2}
	seen := map[[16]byte]bool{}
	for range 1000 {
		id := one.newID()
		require.False(t, seen[id])
		require.Equal(t, id, again.newID())
		require.NotEqual(t, id, other.newID())
		seen[id] = true
	}
}

func TestSlope_IsTheExponentOfAPower(t *testing.T) {
	x := []float64{1e3, 1e4, 1e5, 1e6}
	y := make([]float64, len(x))
	for _, power := range []float64{0, 0.1, 1} {
		for i := range x {
			y[i] = 7 * math.Pow(x[i], power)
		}
		require.InDelta(t, power, slope(x, y), 1e-9)
	}
}

func TestQuantile_ReturnsOneOfTheCosts(t *testing.T) {
	costs := make([]cost, 100)
	for i := range costs {
		costs[i].Units = float64((i*37)%100 + 1)
	}
	require.InDelta(t, 1, quantile(costs, 0, units), 0)
	require.InDelta(t, 51, quantile(costs, 0.5, units), 0)
	require.InDelta(t, 100, quantile(costs, 0.99, units), 0)
	require.InDelta(t, 100, quantile(costs, 1, units), 0)
	require.InDelta(t, 51, median(costs, units), 0)
}
