package deliverytest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// The delays and options of the tests in the specification.
var (
	shortDelays = []time.Duration{0, time.Second, 2 * time.Second}
	shortOpts   = delivery.Options{Timeout: time.Second, Queues: len(shortDelays)}
)

// failsFirst returns an Answer function that answers the first n calls of each message with
// 500, and then with 200.
func failsFirst(n int) func(context.Context, delivery.Call) domain.Answer {
	return func(_ context.Context, c delivery.Call) domain.Answer {
		if c.Attempt < n {
			return domain.Answer{Status: 500}
		}
		return domain.Answer{Status: 200}
	}
}

var queueRules = []deliveryRule{
	{"ABudgetIsTheLimitForTheAttempts", func(w *World) { // DSS-2, -3, -7, -8
		type expected struct {
			*Receiver
			isTaken bool
			calls   int
		}
		var all []expected
		for n := 1; n <= len(shortDelays); n++ {
			policy := domain.QueuePolicy(shortDelays, n)
			all = append(all,
				expected{w.Add(&Receiver{Policy: policy, Answer: failsFirst(n - 1)}), true, n},
				expected{w.Add(&Receiver{Policy: policy, Answer: failsFirst(n)}), false, n})
		}
		opts := shortOpts
		opts.Workers = 2 * len(shortDelays)
		n := w.Start(opts)
		w.Publish(n, 1)
		<-time.After(time.Minute)
		n.Stop()
		for _, r := range all {
			calls := r.Calls()
			require.Len(w, calls, r.calls)
			for i, c := range calls {
				require.Equal(w, i, c.Attempt, "the attempt is the number of the queue")
			}
			require.Equal(w, r.isTaken, len(r.Taken()) == 1)
			require.Equal(w, r.isTaken, len(w.DeadLetters(r.Receiver)) == 0)
		}
	}},
	{"ACallEndsWithTheTimeout", func(w *World) { // DSS-4, -5, -6
		policy := domain.QueuePolicy(shortDelays, len(shortDelays))
		slow := w.Add(&Receiver{Policy: policy, Answer: After(time.Hour, 200)})
		once := w.Add(&Receiver{Policy: policy, Answer: func(ctx context.Context, c delivery.Call) domain.Answer {
			if c.Attempt == 0 {
				return After(time.Hour, 200)(ctx, c)
			}
			return domain.Answer{Status: 200}
		}})
		half := w.Add(&Receiver{Policy: policy, Answer: After(time.Second/2, 200)})
		refused := w.Add(&Receiver{Policy: policy, Answer: After(time.Second/2, 500)})
		n := w.Start(shortOpts)
		w.Publish(n, 1)
		<-time.After(time.Minute)
		n.Stop()
		require.Empty(w, slow.Taken())
		require.Len(w, w.DeadLetters(slow), 1)
		require.Len(w, once.Calls(), 2)
		require.Len(w, once.Taken(), 1)
		require.Len(w, half.Calls(), 1)
		require.Len(w, half.Taken(), 1)
		require.Empty(w, refused.Taken())
		require.Len(w, refused.Calls(), 3)
	}},
	{"ADeadLetterHasTheHistoryOfItsAttempts", func(w *World) { // DSS-29
		r := w.Add(&Receiver{Policy: domain.QueuePolicy(shortDelays, 3), Answer: func(_ context.Context, c delivery.Call) domain.Answer {
			return domain.Answer{Status: 500 + c.Attempt, Error: fmt.Sprint("attempt ", c.Attempt)}
		}})
		n := w.Start(shortOpts)
		w.Publish(n, 2)
		<-time.After(time.Minute)
		n.Stop()
		dead := w.DeadLetters(r)
		require.Len(w, dead, 2)
		for _, d := range dead {
			require.Len(w, d.History, 3)
			for i, a := range d.History {
				require.Equal(w, i+1, a.Number)
				require.Equal(w, 500+i, a.Status)
				require.Equal(w, fmt.Sprint("attempt ", i), a.Error)
				require.False(w, a.Began.IsZero())
			}
		}
	}},
	{"RetriesDoNotDelayFreshMessages", func(w *World) { // DSS-24
		const flood = 300
		policy := domain.QueuePolicy([]time.Duration{0, time.Second, time.Second, time.Second}, 4)
		dead := w.Add(&Receiver{Policy: policy, Concurrency: 64, Answer: After(50*time.Second, 500)})
		n := w.Start(delivery.Options{Queues: 4, Workers: 8, Timeout: time.Minute})
		w.Publish(n, flood)
		<-time.After(10 * time.Minute)
		healthy := w.Add(&Receiver{Policy: policy, Answer: After(100*time.Millisecond, 200)})
		n.Created(healthy.ID, w.Stream)
		<-time.After(3*time.Minute - time.Second)
		require.Len(w, healthy.Taken(), flood, "at least two workers were left to it, for %d calls of 0.1 s", flood)
		require.Less(w, len(dead.Calls()), flood, "the flood lasts")
		n.Stop()
	}},
	{"ABacklogOfOneReceiverDoesNotDelayAnother", func(w *World) { // DSS-25
		policy := domain.QueuePolicy(specDelays, 12)
		slow := After(100*time.Millisecond, 200)
		busy := w.Add(&Receiver{Policy: policy, Concurrency: 64, Answer: slow})
		n := w.Start(delivery.Options{Workers: 4, Queues: 2})
		w.Publish(n, 2000)
		<-time.After(10 * time.Second)
		other := w.Add(&Receiver{Policy: policy, Concurrency: 64, Matches: func(e *repository.Entry) bool { return e.Position.Number == 1999 }, Answer: slow})
		n.Created(other.ID, w.Stream)
		<-time.After(time.Second)
		require.Len(w, other.Taken(), 1, "it waits for its turn, not for the backlog")
		require.Less(w, len(busy.Taken()), 2000)
		n.Stop()
	}},
	{"NoCallOutlivesTheDeadline", func(w *World) { // DSS-27
		r := w.Add(&Receiver{Policy: domain.QueuePolicy(shortDelays, 3), Concurrency: 1, Answer: After(20*time.Second, 200)})
		start := time.Now()
		n := w.Start(delivery.Options{For: 5 * time.Minute, Timeout: time.Minute, Overhead: 30 * time.Second})
		w.Publish(n, 100)
		<-n.Ended()
		require.Less(w, time.Since(start), 5*time.Minute)
		last := start.Add(5*time.Minute - 95*time.Second)
		calls := r.Calls()
		require.NotEmpty(w, calls)
		for _, c := range calls {
			require.False(w, c.At.After(last), "a call begins at %v", c.At.Sub(start))
		}
		require.WithinDuration(w, last, calls[len(calls)-1].At, 20*time.Second, "and none is left out that had the time")
		s := w.Standing(r)
		require.Nil(w, s.Caution, "it was released")
		require.EqualValues(w, len(calls), s.Counters.Delivered)
	}},
	{"ARunThatHasNoTimeForACallBeginsNone", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{For: time.Minute, Timeout: time.Minute})
		w.Publish(n, 3)
		<-n.Ended()
		require.Empty(w, r.Calls())
	}},
	{"ASingleWorkerServesAllQueues", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.QueuePolicy(specDelays, 12), Answer: failsFirst(5)})
		n := w.Start(delivery.Options{Workers: 1, CheckInterval: time.Hour})
		w.Publish(n, 5)
		<-time.After(25 * time.Hour)
		require.Len(w, r.Taken(), 5)
		require.Equal(w, 1, r.MaxConcurrent())
		n.Stop()
	}},
}
