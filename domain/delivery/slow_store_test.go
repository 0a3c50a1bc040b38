package delivery_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// slowCursors delays each load and settlement, or makes it fail, and counts them.
type slowCursors struct {
	repository.Cursors
	isAway      atomic.Bool
	takes       time.Duration
	missing     time.Duration // duration of a load of a missing cursor
	settling    time.Duration
	loads       atomic.Int64
	settlements atomic.Int64
}

func (c *slowCursors) Settle(ctx context.Context, id domain.CursorID, v repository.CursorVersion, s domain.Settlement) (repository.CursorVersion, error) {
	c.settlements.Add(1)
	if c.settling > 0 {
		<-time.After(c.settling)
	}
	return c.Cursors.Settle(ctx, id, v, s)
}

func (c *slowCursors) Load(ctx context.Context, id domain.CursorID, o domain.Owner, clock func() time.Time) (*domain.Cursor, repository.CursorVersion, error) {
	c.loads.Add(1)
	if c.isAway.Load() {
		return nil, "", domain.Errorf(domain.Busy, "the store is throttled")
	}
	<-time.After(c.takes)
	found, version, err := c.Cursors.Load(ctx, id, o, clock)
	if domain.KindOf(err) == domain.NotFound {
		<-time.After(c.missing)
	}
	return found, version, err
}

func worldOn(t *testing.T, c *slowCursors) *deliverytest.World {
	return deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
		s := openMemory(t, clock)
		c.Cursors = s.Cursors
		s.Cursors = c
		return s
	})
}

// A cursor with a due retry is not in memory, and the store fails. The service of the cursor waits
// for its backoff, instead of running every millisecond.
func TestAForgottenCursor_WaitsForItsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &slowCursors{}
		w := worldOn(t, c)
		w.Add(&deliverytest.Receiver{Policy: domain.QueuePolicy([]time.Duration{0, time.Hour}, 2), Answer: deliverytest.Status(500)})
		var ticks atomic.Int64 // the engine reads the clock in each turn of a service
		n := w.Start(delivery.Options{Clock: func() time.Time { ticks.Add(1); return w.Clock.Now() }})
		synctest.Wait()
		w.Publish(n, 1)
		<-time.After(30 * time.Minute) // the cursor is removed from memory after 5 minutes
		c.isAway.Store(true)
		<-time.After(40 * time.Minute) // the retry is due, and its cursor cannot be loaded
		before, loads := ticks.Load(), c.loads.Load()
		<-time.After(time.Minute)
		turns, tries := ticks.Load()-before, c.loads.Load()-loads
		n.Stop()
		require.Positive(t, tries)
		require.Less(t, turns, 100*tries)
	})
}

// A store that takes 2 s for each load delays deliveries, but they continue.
func TestASlowStore_DelaysDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &slowCursors{takes: 2 * time.Second}
		w := worldOn(t, c)
		r := w.Add(&deliverytest.Receiver{Policy: domain.QueuePolicy([]time.Duration{0, 5 * time.Second}, 2)})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 1)
		<-time.After(time.Hour)
		n.Stop()
		require.Len(t, r.Taken(), 1)
	})
}

// An engine may load a cursor just before the cursor is created, because the shard lists it
// already. Nevertheless the engine serves the cursor later.
func TestACursor_IsServedIfItIsCreatedDuringItsLoad(t *testing.T) {
	for _, created := range []time.Duration{500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			w := worldOn(t, &slowCursors{missing: time.Second})
			n := w.Start(delivery.Options{CheckInterval: time.Hour})
			synctest.Wait()
			r := &deliverytest.Receiver{ID: repositorytest.NewCursorID(), Policy: domain.DefaultPolicy()}
			n.Created(r.ID, w.Stream)
			<-time.After(created)
			n.Created(w.Add(r).ID, w.Stream)
			w.Publish(n, 3)
			<-time.After(time.Minute)
			n.Stop()
			require.Len(t, r.Taken(), 3, created)
		})
	}
}

// Receivers that are slow but succeed do not occupy the workers that other receivers need. All
// slow receivers belong to one owner; 100 is the limit for an owner.
func TestSlowReceivers_LeaveWorkersToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worldOn(t, &slowCursors{})
		var slow []*deliverytest.Receiver
		for range 100 {
			slow = append(slow, w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy(), Answer: deliverytest.After(29*time.Second, 200)}))
		}
		r := w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 100)
		<-time.After(5 * time.Minute)
		underway := 0
		for _, r := range slow {
			for _, c := range r.Calls() {
				if !c.Ended {
					underway++
				}
			}
		}
		n.Stop()
		require.Len(t, r.Taken(), 100)
		require.LessOrEqual(t, underway, 32, "half of the workers")
	})
}

// While results are stored, their receiver gets fewer calls. So the results of calls that end
// within the duration of a settlement share one settlement.
func TestResults_ShareSettlements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds = 100
		c := &slowCursors{settling: 5 * time.Millisecond}
		w := worldOn(t, c)
		n := 0
		r := w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy(), Concurrency: 16, Answer: func(ctx context.Context, call delivery.Call) domain.Answer {
			return deliverytest.After(time.Duration(1+call.Entry.Position.Number%4)*time.Millisecond, 200)(ctx, call)
		}})
		w.Publish(nil, 16*rounds)
		node := w.Start(delivery.Options{})
		began := time.Now()
		for len(r.Taken()) < 16*rounds && n < 10_000 {
			<-time.After(time.Millisecond)
			n++
		}
		took := time.Since(began)
		node.Stop()
		require.Len(t, r.Taken(), 16*rounds)
		require.LessOrEqual(t, c.settlements.Load(), int64(rounds+5))
		require.LessOrEqual(t, took, (rounds+5)*10*time.Millisecond)
	})
}

// A call that takes long does not delay the storing of other results.
func TestASlowCall_DoesNotDelayOtherResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worldOn(t, &slowCursors{settling: 50 * time.Millisecond})
		r := w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy(), Concurrency: 2, Answer: func(ctx context.Context, call delivery.Call) domain.Answer {
			if call.Entry.Position.Number == 0 {
				return deliverytest.After(10*time.Second, 200)(ctx, call)
			}
			return domain.Answer{Status: 200}
		}})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 100)
		<-time.After(9 * time.Second)
		require.Len(t, r.Taken(), 99, "one at a time, each stored within 60 ms")
		n.Stop()
	})
}
