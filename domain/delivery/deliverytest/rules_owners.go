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

// ownerRules are about what the owner of a receiver wants.
var ownerRules = []rule{
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
		n = w.Start(delivery.Options{}) // it knows from the store alone
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
		r := w.Add(&Receiver{Policy: domain.QueuePolicy(seedDelays, 12), Concurrency: 1})
		r.Answer = func(c context.Context, call delivery.Call) domain.Answer { return Status(answer)(c, call) }
		n := w.Start(delivery.Options{})
		w.Publish(n, 3)
		<-time.After(time.Hour)
		require.Len(w, r.Calls(), 1)
		answer = 200
		w.Change(n, r, false)
		<-time.After(2 * time.Hour)
		require.Len(w, r.Taken(), 3)
		w.Change(nil, r, false) // the node is not notified, and finds nothing to end
		w.Publish(n, 1)
		<-time.After(time.Hour)
		require.Len(w, r.Taken(), 4)
		n.Stop()
	}},
	{"AnEntryIsTheSameForEachNode", func(w *World) { // of it, the id of a delivery is made
		var published []time.Time
		w.Add(&Receiver{Policy: domain.QueuePolicy(seedDelays, 12), Answer: func(_ context.Context, c delivery.Call) domain.Answer {
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
	{"AChangeDuringALoadIsNotLost", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		thaw := n.Freeze()
		w.Change(n, r, false)
		synctest.Wait() // the receiver was read, and the cursor is not
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
