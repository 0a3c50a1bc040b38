package deliverytest

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
)

// peekFirst returns a request for a bundle of the first count entries of the stream.
func peekFirst(count int) domain.ReplayRequest {
	peek := &domain.PeekRequest{Limit: count}
	for n := range int64(count) {
		peek.Entries = append(peek.Entries, domain.Position{EntryID: domain.EntryID{Number: n}})
	}
	return domain.ReplayRequest{Peek: peek}
}

// dequeueBundle requests to dequeue the stored bundle of a receiver.
func (w *World) dequeueBundle(n *Node, r *Receiver) {
	w.Helper()
	held := w.storedStanding(r).Held
	require.NotNil(w, held)
	w.Replay(n, r, domain.ReplayRequest{Dequeue: held.ID})
}

// callsAfter returns the number of calls that have a delivery of a bundle and began after a time.
func callsAfter(r *Receiver, held *domain.HeldBundle, at time.Time) (calls int) {
	for _, c := range r.Calls() {
		if held.Has(c.Entry) && c.At.After(at) {
			calls++
		}
	}
	return calls
}

var fetchRules = []deliveryRule{
	{"AReceiverIsNotCalledWithItsBundle", func(w *World) {
		status := 500
		r := w.Add(&Receiver{Policy: domain.QueuePolicy([]time.Duration{0, time.Minute, time.Minute}, 3), Answer: func(context.Context, delivery.Call) domain.Answer {
			return domain.Answer{Status: status}
		}})
		n := w.Start(delivery.Options{})
		w.Publish(n, 5)
		<-time.After(time.Second)
		w.Replay(n, r, peekFirst(4))
		synctest.Wait()
		require.Len(w, w.storedStanding(r).Held.Retries, 4)
		status = 200
		w.Publish(n, 3)
		<-time.After(time.Hour)
		require.Len(w, r.Taken(), 4, "the others, and the retry that is not held")
		w.dequeueBundle(n, r)
		<-time.After(time.Hour)
		n.Stop()
		require.Len(w, r.Calls(), 9)
		require.Equal(w, domain.Counters{Triggered: 8, Delivered: 8, Attempts: 9}, w.Standing(r).Counters)
	}},
	{"ABundleHasNoMessageOfACallUnderWay", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Concurrency: 3, Answer: After(time.Second, 200)})
		n := w.Start(delivery.Options{})
		w.Publish(n, 10)
		<-time.After(time.Second / 2)
		w.Replay(n, r, peekFirst(10))
		<-time.After(time.Minute)
		require.Len(w, r.Calls(), 3)
		require.Equal(w, 7, w.storedStanding(r).Held.Len())
		w.Publish(n, 10)
		<-time.After(time.Minute)
		require.Len(w, r.Taken(), 13, "what is held leaves the room for calls")
		n.Stop()
	}},
	{"APausedReceiverGetsABundle", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		w.Change(n, r, true)
		w.Publish(n, 5)
		<-time.After(time.Minute)
		w.Replay(n, r, peekFirst(5))
		synctest.Wait()
		require.Len(w, w.storedStanding(r).Held.Taken, 5)
		w.Change(n, r, false)
		<-time.After(time.Hour)
		require.Empty(w, r.Calls())
		n.Stop()
	}},
	{"ABundleIsKeptByTheNextOwner", func(w *World) {
		w.Shared = true
		r := w.Add(&Receiver{Policy: domain.QueuePolicy([]time.Duration{0, time.Minute}, 2), Answer: Status(500)})
		a, b := w.Start(delivery.Options{}), w.Start(delivery.Options{})
		w.awaitSharing()
		w.Publish(a, 2)
		<-time.After(2 * time.Second)
		w.Change(b, r, true)
		<-time.After(2 * time.Second)
		w.Publish(b, 2)
		w.Replay(a, r, peekFirst(4)) // the owner of the cursor is either a or b
		<-time.After(2 * time.Second)
		held := w.storedStanding(r).Held
		require.Equal(w, 4, held.Len())
		w.Change(b, r, false)
		owner, other := a, b
		if w.storedStanding(r).By == b.incarnation {
			owner, other = b, a
		}
		owner.Kill()
		<-time.After(time.Hour)
		require.Equal(w, other.incarnation, w.storedStanding(r).By)
		require.Equal(w, held, w.storedStanding(r).Held)
		require.Len(w, r.Calls(), 2)
		w.dequeueBundle(other, r)
		<-time.After(time.Minute)
		other.Stop()
		s := w.Standing(r)
		require.Zero(w, s.Outstanding())
		require.EqualValues(w, 4, s.Counters.Delivered)
	}},
	{"ADequeueDoesNotWaitWhileCallsFail", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.QueuePolicy([]time.Duration{0, time.Second, time.Second}, 3), Concurrency: 64, Answer: After(5*time.Millisecond, 500)})
		n := w.Start(delivery.Options{})
		n.AnswerSettlementsAfter(5 * time.Millisecond)
		w.Publish(n, 300)
		<-time.After(700 * time.Millisecond)
		w.Replay(n, r, peekFirst(domain.MaxHeld))
		<-time.After(100 * time.Millisecond)
		held := w.storedStanding(r).Held
		require.NotEmpty(w, held.Retries)
		w.Publish(n, 600)
		w.dequeueBundle(n, r)
		<-time.After(200 * time.Millisecond)
		require.Contains(w, w.storedStanding(r).Dequeued, held.ID)
		n.Stop()
	}},
	{"AKillAtAnyWriteOfABundleLosesNothing", func(w *World) {
		const messages, concurrency = 8, 3
		for writes := 1; ; writes++ {
			w := w.anotherWorld()
			r := w.troubledReceiver(concurrency)
			a := w.Start(delivery.Options{CheckInterval: time.Hour})
			w.Publish(a, messages)
			<-time.After(time.Second / 2) // calls with three deliveries are under way
			a.CutAfter(writes)
			w.Replay(a, r, peekFirst(messages))
			synctest.Wait()
			handed, at := w.storedStanding(r).Held, time.Now()
			<-time.After(time.Minute)
			if handed != nil {
				w.dequeueBundle(a, r)
			}
			<-time.After(10 * time.Minute)
			isCut := a.IsCut()
			a.Kill()
			b := w.Start(delivery.Options{CheckInterval: time.Hour})
			synctest.Wait()
			held, heldAt := w.storedStanding(r).Held, time.Now()
			<-time.After(20 * time.Minute)
			if held != nil {
				w.dequeueBundle(b, r)
				<-time.After(time.Minute)
			}
			b.Stop()
			s := w.Standing(r)
			require.Nil(w, s.Held)
			require.Len(w, s.Dequeued, 1)
			require.Zero(w, s.Outstanding())
			require.EqualValues(w, messages, s.Counters.Triggered, "P1")
			require.EqualValues(w, messages, s.Counters.Delivered+s.Counters.Errored, "P1")
			if handed != nil {
				require.Zero(w, callsAfter(r, handed, at), "P15")
			}
			if held != nil {
				require.Zero(w, callsAfter(r, held, heldAt), "P15")
			}
			untraced := len(r.Calls()) - int(s.Counters.Attempts)
			require.GreaterOrEqual(w, untraced, 0)
			require.LessOrEqual(w, untraced, concurrency*w.takeoversOf(r), "P5: calls without a trace")
			if !isCut {
				require.Greater(w, writes, 3)
				return
			}
		}
	}},
}
