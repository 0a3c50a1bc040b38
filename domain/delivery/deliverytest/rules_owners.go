package deliverytest

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// ownerRules are about requests of the owners of receivers.
var ownerRules = []deliveryRule{
	{"APausedReceiverIsNotCalledUntilItIsResumed", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		other := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		w.Publish(n, 5)
		synctest.Wait()
		w.Change(n, r, true)
		synctest.Wait()
		w.Publish(n, 20)
		<-time.After(time.Hour)
		require.Len(w, r.Calls(), 5)
		require.Len(w, other.Taken(), 25)
		n.Stop()
		n = w.Start(delivery.Options{}) // the node learns of the pause only from the store
		<-time.After(time.Hour)
		require.Len(w, r.Calls(), 5)
		w.Change(n, r, false)
		<-time.After(time.Minute)
		require.Len(w, r.Taken(), 25)
		require.Len(w, r.Calls(), 25)
		n.Stop()
	}},
	{"ResumingEndsThePauseAfterGone", func(w *World) {
		answer := 410
		r := w.Add(&Receiver{Policy: domain.QueuePolicy(specDelays, 12), Concurrency: 1})
		r.Answer = func(c context.Context, call delivery.Call) domain.Answer { return Status(answer)(c, call) }
		n := w.Start(delivery.Options{})
		w.Publish(n, 3)
		<-time.After(time.Hour)
		require.Len(w, r.Calls(), 1)
		answer = 200
		w.Change(n, r, false)
		<-time.After(2 * time.Hour)
		require.Len(w, r.Taken(), 3)
		w.Change(nil, r, false) // the node is not notified, and there are no calls to end
		w.Publish(n, 1)
		<-time.After(time.Hour)
		require.Len(w, r.Taken(), 4)
		n.Stop()
	}},
	{"AnEntryIsTheSameForEachNode", func(w *World) { // the id of a delivery is built from its entry
		var published []time.Time
		w.Add(&Receiver{Policy: domain.QueuePolicy(specDelays, 12), Answer: func(_ context.Context, c delivery.Call) domain.Answer {
			published = append(published, c.Entry.Published)
			return domain.Answer{Status: 500}
		}})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		messages := repositorytest.Messages(1)
		appended, err := w.Stores.Streams.Append(context.Background(), w.Stream, messages)
		require.NoError(w, err)
		<-time.After(time.Second)
		n.Published(w.Stream, messages, appended)
		<-time.After(30 * time.Second)
		n.Stop()
		n = w.Start(delivery.Options{})
		<-time.After(5 * time.Minute)
		n.Stop()
		require.Len(w, published, 2)
		require.True(w, published[0].Equal(published[1]), published)
	}},
	{"AChangeWithoutASignalIsFoundByALook", func(w *World) {
		paused := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		idle := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		removed := w.Add(&Receiver{Policy: domain.QueuePolicy(specDelays, 12), Answer: Status(500)})
		n := w.Start(delivery.Options{})
		w.Publish(n, 1)
		<-time.After(time.Second)
		w.Change(nil, paused, true)
		w.Note(paused)
		w.Remove(removed)
		w.Note(removed)
		<-time.After(31 * time.Second)
		calls := len(removed.Calls())
		loads := w.Loads()
		w.Publish(n, 1)
		<-time.After(time.Hour)
		require.Len(w, paused.Calls(), 1)
		require.Len(w, removed.Calls(), calls)
		require.Len(w, idle.Calls(), 2)
		require.LessOrEqual(w, w.Loads(), loads+1, "what has not changed is not loaded again")
		w.Change(nil, paused, false) // the cursor is no longer in memory
		w.Note(paused)
		<-time.After(31 * time.Second)
		require.Len(w, paused.Calls(), 2)
		n.Stop()
		require.Equal(w, domain.Closed, w.Standing(removed).State)
	}},
	{"AChangeIsNotLostByALoadThatFails", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{CheckInterval: time.Hour})
		synctest.Wait()
		n.line.mu.Lock()
		n.line.fault = func() (before, after error) { return domain.Errorf(domain.Busy, "the store is throttled"), nil }
		n.line.mu.Unlock()
		w.Change(n, r, true)
		<-time.After(5 * time.Second)
		n.line.mu.Lock()
		n.line.fault = nil
		n.line.mu.Unlock()
		<-time.After(time.Minute)
		w.Publish(n, 1)
		<-time.After(time.Minute)
		require.Empty(w, r.Calls())
		n.Stop()
	}},
	{"AChangeDuringALoadIsNotLost", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		thaw := n.Freeze()
		w.Change(n, r, false)
		synctest.Wait() // the receiver was read, and the cursor was not loaded yet
		w.Change(n, r, true)
		synctest.Wait()
		thaw()
		synctest.Wait()
		w.Publish(n, 1)
		<-time.After(time.Hour)
		require.Empty(w, r.Calls())
		n.Stop()
	}},
	{"AChangeDuringASettlementRepeatsNoCall", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		n.AnswerSettlementsAfter(10 * time.Second)
		for range 10 {
			w.Publish(n, 1)
			<-time.After(time.Second) // the settlement is under way
			w.Change(n, r, false)
			<-time.After(time.Minute)
		}
		require.Len(w, r.Calls(), 10)
		n.Stop()
		require.EqualValues(w, 10, w.Standing(r).Counters.Delivered)
	}},
}
