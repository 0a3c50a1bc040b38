package deliverytest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

var receiverRules = []deliveryRule{
	{"FailingReceiversDoNotDelayOthers", func(w *World) { // P11
		policy := domain.DefaultPolicy()
		var dead []*Receiver
		for range 30 {
			dead = append(dead, w.Add(&Receiver{Policy: policy, Answer: After(time.Hour, 200)}))
		}
		healthy := w.Add(&Receiver{Policy: policy, Answer: After(10*time.Millisecond, 200)})
		n := w.Start(delivery.Options{Queues: 4})
		<-time.After(time.Second)
		w.Publish(n, 50)
		<-time.After(2 * time.Minute) // the first calls have timed out
		require.Len(w, healthy.Taken(), 50)
		for range 20 {
			start := time.Now()
			w.Publish(n, 10)
			taken := len(healthy.Taken())
			<-time.After(time.Second)
			require.Len(w, healthy.Taken(), taken+10, "after %v", time.Since(start))
			<-time.After(9 * time.Second)
		}
		for _, r := range dead {
			require.NotEmpty(w, r.Calls())
			require.LessOrEqual(w, r.MaxConcurrent(), 16)
		}
		n.Stop()
	}},
	{"AReceiverHasNoMoreCallsThanItsConcurrency", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Concurrency: 3, Answer: After(time.Second, 200)})
		n := w.Start(delivery.Options{})
		w.Publish(n, 20)
		<-time.After(time.Minute)
		require.Len(w, r.Taken(), 20)
		require.Equal(w, 3, r.MaxConcurrent())
		n.Stop()
	}},
	{"IsCallingReportsCallsUnderWay", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.QueuePolicy([]time.Duration{0, 5 * time.Second}, 2), Answer: After(time.Second, 500)})
		other := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		w.Publish(n, 1)
		<-time.After(time.Second / 2)
		require.True(w, n.IsCalling(r.ID, domain.EntryID{}))
		require.False(w, n.IsCalling(r.ID, domain.EntryID{Number: 1}))
		require.False(w, n.IsCalling(other.ID, domain.EntryID{}), "its call has ended")
		<-time.After(time.Second)
		require.False(w, n.IsCalling(r.ID, domain.EntryID{}))
		<-time.After(5 * time.Second) // until the next attempt has begun
		require.True(w, n.IsCalling(r.ID, domain.EntryID{}))
		n.Stop()
		require.False(w, n.IsCalling(r.ID, domain.EntryID{}))
	}},
	{"RetryAfterHoldsTheReceiver", func(w *World) {
		start := time.Now()
		until := start.Add(10 * time.Minute)
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Concurrency: 1, Answer: func(context.Context, delivery.Call) domain.Answer {
			if time.Now().Before(until) {
				return domain.Answer{Status: 429, RetryAfter: time.Until(until)}
			}
			return domain.Answer{Status: 200}
		}})
		n := w.Start(delivery.Options{})
		w.Publish(n, 10)
		<-time.After(9 * time.Minute)
		require.Len(w, r.Calls(), 1)
		<-time.After(2 * time.Minute)
		require.Len(w, r.Taken(), 10)
		n.Stop()
	}},
	{"AnOpenBreakerUsesNoAttempts", func(w *World) {
		up := time.Now().Add(time.Hour)
		policy := domain.DefaultPolicy()
		r := w.Add(&Receiver{Policy: policy, Concurrency: 4, Answer: func(context.Context, delivery.Call) domain.Answer {
			if time.Now().Before(up) {
				return domain.Answer{Status: 503}
			}
			return domain.Answer{Status: 200}
		}})
		n := w.Start(delivery.Options{CheckInterval: time.Hour})
		w.Publish(n, 500)
		<-time.After(59 * time.Minute)
		require.Less(w, len(r.Calls()), 180, "a probe every 30 seconds")
		<-time.After(13 * time.Hour)
		n.Stop()
		require.Len(w, r.Taken(), 500-len(w.DeadLetters(r)))
		require.LessOrEqual(w, len(w.DeadLetters(r)), 12)
	}},
	{"AReceiverThatIsGoneIsPaused", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Concurrency: 1, Answer: Status(410)})
		n := w.Start(delivery.Options{CheckInterval: time.Hour})
		w.Publish(n, 5)
		<-time.After(24 * time.Hour)
		require.Len(w, r.Calls(), 1)
		n.Stop()
		s := w.Standing(r)
		require.Equal(w, domain.Paused, s.State)
		require.Equal(w, 1, s.Outstanding(), "the backlog is kept")
	}},
	{"TheDeliveriesOfADeletedReceiverAreCancelled", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.QueuePolicy(specDelays, 12), Answer: Status(500)})
		n := w.Start(delivery.Options{CheckInterval: time.Hour})
		w.Publish(n, 200)
		<-time.After(time.Second)
		w.Remove(r)
		n.Changed(r.ID)
		calls := len(r.Calls())
		<-time.After(24 * time.Hour)
		require.Len(w, r.Calls(), calls)
		n.Stop()
		s := w.Standing(r)
		require.Equal(w, domain.Closed, s.State)
		require.EqualValues(w, 200, s.Counters.Cancelled)
		require.Zero(w, s.Outstanding())
	}},
	{"AStartingNodeDoesNotLoadDeletedReceivers", func(w *World) {
		var all []*Receiver
		for range 100 {
			all = append(all, w.Add(&Receiver{Policy: domain.QueuePolicy(specDelays, 12), Answer: Status(500)}))
		}
		n := w.Start(delivery.Options{CheckInterval: time.Hour})
		w.Publish(n, 3)
		<-time.After(time.Second)
		for i, r := range all {
			w.Remove(r)
			if i%2 == 0 {
				n.Changed(r.ID)
			}
		}
		<-time.After(time.Minute)
		n.Stop()
		w.Start(delivery.Options{}).stopAfter(time.Minute) // this node finds the removed receivers that n was not notified of
		for _, r := range all {
			s := w.Standing(r)
			require.Equal(w, domain.Closed, s.State)
			require.EqualValues(w, 3, s.Counters.Cancelled)
		}
		before := w.loadCount
		w.Start(delivery.Options{}).stopAfter(time.Hour)
		require.Equal(w, before, w.loadCount)
	}},
	{"FilteredMessagesAreCountedAndNotCalled", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Matches: func(e *repository.Entry) bool { return e.Position.Number%100 == 7 }})
		none := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Matches: func(*repository.Entry) bool { return false }})
		n := w.Start(delivery.Options{})
		w.Publish(n, 3000)
		<-time.After(time.Minute)
		require.Len(w, r.Taken(), 30)
		require.Len(w, r.Calls(), 30)
		n.Kill()
		require.EqualValues(w, 3000, w.Standing(none).Counters.Filtered, "it is stored without any call")
		require.EqualValues(w, 2970, w.Standing(r).Counters.Filtered)
	}},
	{"ExpiredMessagesAreCounted", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		w.Publish(nil, 70)
		<-time.After(22 * 24 * time.Hour)
		n := w.Start(delivery.Options{})
		w.Publish(n, 3)
		<-time.After(time.Minute)
		n.Stop()
		require.Len(w, r.Taken(), 3)
		require.Equal(w, domain.Counters{Triggered: 73, Expired: 70, Delivered: 3, Attempts: 3}, w.Standing(r).Counters)
	}},
	{"AnIdleCursorIsForgottenAndServedAgain", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.QueuePolicy([]time.Duration{0, time.Hour}, 2), Answer: failsFirst(1)})
		n := w.Start(delivery.Options{CheckInterval: time.Hour})
		w.Publish(n, 1)
		<-time.After(2 * time.Hour)
		require.Len(w, r.Taken(), 1, "a retry that is due later than it is remembered")
		w.Publish(n, 1)
		<-time.After(2 * time.Hour)
		require.Len(w, r.Taken(), 2)
		n.Stop()
	}},
}
