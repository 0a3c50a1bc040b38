package deliverytest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// numbersOf returns the numbers of the entries of calls, in their order.
func numbersOf(calls []RecordedCall) []int64 {
	all := make([]int64, len(calls))
	for i, c := range calls {
		all[i] = c.Entry.Number
	}
	return all
}

// failTimes returns an Answer function. The first failures[n] calls with the entry number n fail,
// and all later calls succeed.
func failTimes(failures map[int64]int) func(context.Context, delivery.Call) domain.Answer {
	var mu sync.Mutex
	left := make(map[int64]int, len(failures))
	for number, n := range failures {
		left[number] = n
	}
	return func(ctx context.Context, c delivery.Call) domain.Answer {
		mu.Lock()
		defer mu.Unlock()
		status := 200
		if n := c.Entry.Position.Number; left[n] > 0 {
			left[n]--
			status = 500
		}
		return domain.Answer{Status: status}
	}
}

// requireOrder requires that each call of a receiver has the entry after the entry of the last call,
// or the same entry if the last call failed.
func (r *Receiver) requireOrder(w *World) {
	w.Helper()
	next := int64(0)
	for _, c := range r.Calls() {
		require.Equal(w, next, c.Entry.Number)
		if c.Status == 200 {
			next++
		}
	}
}

var orderedPolicy = domain.QueuePolicy([]time.Duration{0, time.Minute, time.Hour}, 3)

var orderRules = []deliveryRule{
	{"AnOrderedReceiverIsCalledInTheOrderOfTheStream", func(w *World) {
		fails := failTimes(map[int64]int{0: 1, 7: 2, 8: 1, 299: 2})
		r := w.Add(&Receiver{Policy: orderedPolicy, Concurrency: 8, IsOrdered: true, Answer: func(ctx context.Context, c delivery.Call) domain.Answer {
			<-time.After(time.Duration(10+c.Entry.Position.Number%3*20) * time.Millisecond)
			return fails(ctx, c)
		}})
		free := w.Add(&Receiver{Policy: orderedPolicy, Concurrency: 8, Answer: After(10*time.Millisecond, 200)})
		n := w.Start(delivery.Options{})
		w.Publish(n, 100)
		<-time.After(20 * time.Second)
		require.Len(w, r.Calls(), 1, "nothing behind a delivery that failed is called")
		require.Len(w, free.Taken(), 100, "another receiver does not wait")
		w.Publish(nil, 200) // the node finds the entries when it looks
		<-time.After(10 * time.Hour)
		n.Stop()
		require.Equal(w, 1, r.MaxConcurrent(), "one call at a time")
		require.Len(w, r.Taken(), 300)
		r.requireOrder(w)
		require.Equal(w, domain.Counters{Triggered: 300, Delivered: 300, Attempts: 306}, w.Standing(r).Counters)
	}},
	{"AnOrderedReceiverContinuesAfterADeadLetter", func(w *World) {
		r := w.Add(&Receiver{
			Policy: orderedPolicy, IsOrdered: true, Answer: failTimes(map[int64]int{2: 1000}),
			Matches: func(e *repository.Entry) bool { return e.Position.Number != 3 },
		})
		n := w.Start(delivery.Options{})
		w.Publish(n, 6)
		<-time.After(30 * time.Minute)
		require.Equal(w, []int64{0, 1, 2, 2}, numbersOf(r.Calls()))
		<-time.After(time.Hour)
		n.Stop()
		require.Equal(w, []int64{0, 1, 2, 2, 2, 4, 5}, numbersOf(r.Calls()))
		require.Len(w, w.DeadLetters(r), 1)
		require.Equal(w, domain.Counters{Triggered: 5, Filtered: 1, Delivered: 4, Errored: 1, Attempts: 7}, w.Standing(r).Counters)
	}},
	{"AnOrderedReceiverIsCalledInOrderByEachOwner", func(w *World) {
		const messages = 6
		for writes := 1; ; writes++ {
			w := w.anotherWorld()
			r := w.Add(&Receiver{Policy: orderedPolicy, Concurrency: 4, IsOrdered: true, Answer: failTimes(map[int64]int{1: 1, 4: 2})})
			a := w.Start(delivery.Options{CheckInterval: time.Hour})
			a.CutAfter(writes)
			w.Publish(a, messages)
			<-time.After(10 * time.Minute)
			isCut := a.IsCut()
			a.Kill()
			b := w.Start(delivery.Options{CheckInterval: time.Hour})
			<-time.After(10 * time.Hour)
			b.Stop()
			require.Equal(w, 1, r.MaxConcurrent())
			require.Len(w, r.Taken(), messages)
			// A call without a stored result is repeated before later calls.
			repeated := 0
			for i, number := range numbersOf(r.Calls()) {
				if i == 0 {
					require.Zero(w, number)
					continue
				}
				last := r.Calls()[i-1]
				if number == last.Entry.Number && last.Status == 200 {
					repeated++
					continue
				}
				want := last.Entry.Number
				if last.Status == 200 {
					want++
				}
				require.Equal(w, want, number)
			}
			require.LessOrEqual(w, repeated, 1)
			if !isCut {
				require.Greater(w, writes, 5)
				return
			}
		}
	}},
	{"AReplayDelaysNoDeliveryOfAnOrderedReceiver", func(w *World) {
		r := w.Add(&Receiver{Policy: orderedPolicy, IsOrdered: true, Answer: failTimes(map[int64]int{0: 5, 2: 2})})
		n := w.Start(delivery.Options{})
		w.Publish(n, 2)
		<-time.After(3 * time.Hour)
		require.Equal(w, []int64{0, 0, 0, 1}, numbersOf(r.Calls()))
		w.Replay(n, r, replayOf(0))
		<-time.After(time.Second)
		w.Publish(n, 1)
		<-time.After(time.Second)
		require.Equal(w, []int64{0, 0, 0, 1, 0, 2}, numbersOf(r.Calls()), "a replay that waits for its next attempt delays no other delivery")
		w.Publish(n, 1)
		<-time.After(10 * time.Minute)
		require.Equal(w, []int64{0, 0, 0, 1, 0, 2, 0, 2}, numbersOf(r.Calls()), "and others do not delay the replay")
		<-time.After(2 * time.Hour)
		n.Stop()
		require.Equal(w, []int64{0, 0, 0, 1, 0, 2, 0, 2, 0, 2, 3}, numbersOf(r.Calls()))
		require.Equal(w, domain.Counters{Triggered: 5, Delivered: 4, Errored: 1, Attempts: 11}, w.Standing(r).Counters)
	}},
	{"ARangeIsReplayedInOrder", func(w *World) {
		var mu sync.Mutex
		failing := map[int64]int{}
		r := w.Add(&Receiver{Policy: orderedPolicy, Concurrency: 4, IsOrdered: true, Answer: func(_ context.Context, c delivery.Call) domain.Answer {
			mu.Lock()
			defer mu.Unlock()
			if n := c.Entry.Position.Number; failing[n] > 0 {
				failing[n]--
				return domain.Answer{Status: 500}
			}
			return domain.Answer{Status: 200}
		}})
		n := w.Start(delivery.Options{})
		w.Publish(n, 20)
		<-time.After(time.Minute)
		mu.Lock()
		failing = map[int64]int{3: 1, 11: 3, 20: 2}
		mu.Unlock()
		request := rangeOf(100)
		request.Range.To = w.Clock.Now()
		<-time.After(time.Second)
		w.Publish(n, 2) // the first message fails, and waits for its next attempt
		<-time.After(2 * time.Minute)
		calls := len(r.Calls())
		w.Replay(n, r, request)
		<-time.After(10 * time.Second)
		require.Equal(w, []int64{0, 1, 2, 3}, numbersOf(r.Calls())[calls:], "a delivery that waits for its next attempt does not delay a replay")
		<-time.After(10 * time.Hour)
		n.Stop()
		var replayed, fresh []int64
		for _, number := range numbersOf(r.Calls())[20:] {
			if number < 20 {
				replayed = append(replayed, number)
			} else {
				fresh = append(fresh, number)
			}
		}
		require.True(w, slices.IsSorted(replayed), "%v", replayed)
		require.Len(w, replayed, 20+1+2)
		require.Equal(w, []int64{20, 20, 20, 21}, fresh)
		require.Equal(w, 1, r.MaxConcurrent())
		s := w.Standing(r)
		require.Equal(w, domain.ReplayDone, s.Replay.State)
		require.EqualValues(w, 20, s.Replay.Matched)
		require.Equal(w, domain.Counters{Triggered: 42, Delivered: 41, Errored: 1, Attempts: 20 + 23 + 4}, s.Counters)
	}},
	{"AReceiverThatBecomesOrderedIsCalledInOrderFromThenOn", func(w *World) {
		r := w.Add(&Receiver{Policy: orderedPolicy, Concurrency: 4, Answer: failTimes(map[int64]int{1: 2, 2: 1, 3: 2})})
		n := w.Start(delivery.Options{})
		w.Publish(n, 4)
		<-time.After(2 * time.Minute)
		require.Len(w, r.Calls(), 7)
		w.mu.Lock()
		r.IsOrdered = true
		w.mu.Unlock()
		n.Changed(r.ID)
		w.Publish(n, 2)
		<-time.After(30 * time.Minute)
		require.Len(w, r.Calls(), 7, "what has failed keeps its times, and nothing else is called before it has ended")
		<-time.After(time.Hour)
		n.Stop()
		require.Equal(w, []int64{4, 5}, numbersOf(r.Calls())[9:])
		require.Len(w, r.Taken(), 6)
	}},
}
