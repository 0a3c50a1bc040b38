package deliverytest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// PublishWith appends count messages of a priority, and notifies n unless n is nil.
func (w *World) PublishWith(n *Node, count, priority int) {
	w.Helper()
	messages := repositorytest.Messages(count)
	for i := range messages {
		messages[i].Priority = priority
	}
	appended, err := w.Stores.Streams.Append(context.Background(), w.Stream, messages)
	require.NoError(w, err)
	if n != nil {
		n.Published(w.Stream, messages, appended)
	}
}

// prioritiesOf returns the priorities of calls, in their order.
func prioritiesOf(calls []RecordedCall) []int {
	var all []int
	for _, c := range calls {
		all = append(all, c.Entry.Priority)
	}
	return all
}

// eachEighth returns n priorities: every eighth is lowest, and the others are highest.
func eachEighth(n, highest, lowest int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = highest
		if i%8 == 7 {
			all[i] = lowest
		}
	}
	return all
}

var priorityRules = []deliveryRule{
	{"TheHighestPriorityOfACursorGoesFirst", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Concurrency: 1, Answer: After(10*time.Millisecond, 200)})
		w.PublishWith(nil, 50, 0)
		w.PublishWith(nil, 50, 9)
		n := w.Start(delivery.Options{})
		<-time.After(time.Minute)
		n.Stop()
		calls := prioritiesOf(r.Calls())
		require.Len(w, calls, 100)
		require.Equal(w, eachEighth(50, 9, 0), calls[:50])
	}},
	{"TheHighestPriorityOfAllCursorsGoesFirst", func(w *World) {
		low := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Answer: After(10*time.Millisecond, 200)})
		n := w.Start(delivery.Options{Workers: 1, Queues: 1})
		w.PublishWith(n, 60, 3)
		<-time.After(100 * time.Millisecond)
		stream := w.Stream
		w.Stream = repositorytest.NewStream()
		high := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Answer: After(10*time.Millisecond, 200)})
		n.Created(high.ID, w.Stream)
		<-time.After(100 * time.Millisecond)
		before := len(low.Calls())
		w.PublishWith(n, 40, 4)
		<-time.After(450 * time.Millisecond)
		require.GreaterOrEqual(w, len(high.Calls()), 35)
		require.InDelta(w, 45/8, len(low.Calls())-before, 2, "each eighth one")
		w.Stream = stream
		<-time.After(time.Minute)
		require.Len(w, low.Taken(), 60)
		n.Stop()
	}},
	{"TheHighestPriorityOfRetriesGoesFirst", func(w *World) {
		until := time.Now().Add(time.Minute)
		r := w.Add(&Receiver{Policy: domain.QueuePolicy([]time.Duration{0, 5 * time.Minute}, 2), Concurrency: 1, Answer: func(context.Context, delivery.Call) domain.Answer {
			if time.Now().Before(until) {
				return domain.Answer{Status: 500}
			}
			return domain.Answer{Status: 200}
		}})
		n := w.Start(delivery.Options{})
		w.PublishWith(n, 20, 1) // these messages are due first
		<-time.After(time.Second)
		w.PublishWith(n, 20, 5)
		<-time.After(30 * time.Second)
		require.Len(w, r.Calls(), 40)
		w.Change(n, r, true)
		<-time.After(10 * time.Minute)
		w.Change(n, r, false)
		<-time.After(10 * time.Minute)
		n.Stop()
		calls := prioritiesOf(r.Calls())[40:]
		require.Len(w, calls, 40)
		low := 0
		for _, p := range calls[:20] {
			if p == 1 {
				low++
			}
		}
		require.InDelta(w, 20/8, low, 1)
	}},
	{"AHighRetryGoesBeforeFreshMessages", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.QueuePolicy([]time.Duration{0, 5 * time.Second}, 2), Concurrency: 1, Answer: func(ctx context.Context, c delivery.Call) domain.Answer {
			if c.Entry.Priority == 9 && c.Attempt == 0 {
				return domain.Answer{Status: 500}
			}
			return After(10*time.Millisecond, 200)(ctx, c)
		}})
		n := w.Start(delivery.Options{Workers: 1, Queues: 1})
		w.PublishWith(n, 5, 9)
		<-time.After(time.Second)
		for range 20 {
			w.PublishWith(n, 50, 0)
		}
		<-time.After(5 * time.Second)
		retried := 0
		for _, c := range r.Calls() {
			if c.Attempt == 1 {
				retried++
				require.WithinDuration(w, r.Calls()[0].At.Add(5*time.Second), c.At, 500*time.Millisecond)
			}
		}
		require.Equal(w, 5, retried)
		<-time.After(time.Minute)
		n.Stop()
		require.Len(w, r.Taken(), 1005)
	}},
}
