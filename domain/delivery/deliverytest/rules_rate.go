package deliverytest

import (
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// maxCallsWithin returns the maximum number of calls that began within d.
func (r *Receiver) maxCallsWithin(d time.Duration) (most int) {
	calls := r.Calls()
	for i, first := 0, 0; i < len(calls); i++ {
		for calls[i].At.Sub(calls[first].At) >= d {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

var rateRules = []deliveryRule{
	{"AReceiverIsCalledAtItsRate", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), MaxRate: 20})
		slow := w.Add(&Receiver{Policy: domain.DefaultPolicy(), MaxRate: 0.1})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 300)
		<-time.After(10 * time.Second)
		require.InDelta(w, 200, len(r.Calls()), 6, "it is called as often as it may be")
		<-time.After(50 * time.Second)
		require.Len(w, r.Taken(), 300)
		require.Len(w, r.Calls(), 300)
		require.LessOrEqual(w, r.maxCallsWithin(time.Second), 20+2)
		require.InDelta(w, 6, len(slow.Calls()), 1)
		require.LessOrEqual(w, slow.maxCallsWithin(9*time.Second), 1)
		n.Stop()
		s := w.Standing(slow)
		require.Less(w, s.Outstanding(), 10, "what waits is not taken")
	}},
	{"RetriesCountTowardsTheRate", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.QueuePolicy([]time.Duration{0, time.Minute}, 2), MaxRate: 5, Answer: Status(500)})
		n := w.Start(delivery.Options{})
		w.Publish(n, 100)
		<-time.After(10 * time.Minute)
		n.Stop()
		require.Len(w, r.Calls(), 200)
		require.LessOrEqual(w, r.maxCallsWithin(time.Second), 5+1)
		require.Len(w, w.DeadLetters(r), 100)
	}},
	{"AReceiverThatWaitsForItsRateDelaysNoOther", func(w *World) {
		for range 20 {
			w.Add(&Receiver{Policy: domain.DefaultPolicy(), MaxRate: 0.5})
		}
		free := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Answer: After(10*time.Millisecond, 200)})
		n := w.Start(delivery.Options{Workers: 2, Queues: 1})
		synctest.Wait()
		w.Publish(n, 200)
		<-time.After(5 * time.Second)
		require.Len(w, free.Taken(), 200)
		n.Stop()
	}},
	{"FilteredMessagesDoNotCountTowardsTheRate", func(w *World) {
		r := w.Add(&Receiver{
			Policy: domain.DefaultPolicy(), MaxRate: 1, Matches: func(e *repository.Entry) bool { return e.Position.Number%500 == 499 },
		})
		n := w.Start(delivery.Options{})
		w.Publish(n, 2000)
		<-time.After(5 * time.Second)
		require.Len(w, r.Taken(), 4)
		n.Stop()
	}},
	{"AChangedRateTakesEffect", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), MaxRate: 0.01})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 50)
		<-time.After(time.Second)
		require.Len(w, r.Calls(), 1)
		w.mu.Lock()
		r.MaxRate = 0
		w.mu.Unlock()
		n.Changed(r.ID)
		<-time.After(time.Second)
		require.Len(w, r.Taken(), 50)
		n.Stop()
	}},
	{"ASettlementIsNotified", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		settled := n.Settled(r.ID)
		require.Equal(w, settled, n.Settled(r.ID), "all callers share it")
		select {
		case <-settled:
			w.Error("nothing was settled")
		default:
		}
		w.Publish(n, 1)
		<-settled
		s, err := w.Stores.Cursors.Standing(w.Context(), r.ID)
		require.NoError(w, err)
		require.EqualValues(w, 1, s.Counters.Delivered)
		require.NotEqual(w, settled, n.Settled(r.ID))
		n.Stop()
	}},
}
