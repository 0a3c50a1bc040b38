package deliverytest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
)

var unreadRules = []deliveryRule{
	{"AMessageThatCannotBeReadIsNoAttempt", func(w *World) {
		readable := time.Now().Add(time.Hour)
		var tries atomic.Int64
		answer := func(_ context.Context, c delivery.Call) domain.Answer {
			switch {
			case c.Entry.Position.Number == 1 && time.Now().Before(readable):
				tries.Add(1)
				return domain.Answer{Unread: true, Error: "not now"}
			case c.Entry.Position.Number == 2 && c.Attempt == 0:
				return domain.Answer{Status: 500}
			}
			return domain.Answer{Status: 200}
		}
		r := w.Add(&Receiver{Policy: domain.QueuePolicy(specDelays, 3), Concurrency: 2, Answer: answer})
		n := w.Start(delivery.Options{})
		w.Publish(n, 20)
		<-time.After(30 * time.Minute)
		require.Len(w, r.Taken(), 19, "the others go on")
		require.Less(w, tries.Load(), int64(150), "it backs off")
		<-time.After(31 * time.Minute)
		n.Stop()
		require.Len(w, r.Taken(), 20)
		require.Equal(w, domain.Counters{Triggered: 20, Delivered: 20, Attempts: 21}, w.Standing(r).Counters)
	}},
	{"ARetryWhoseMessageCannotBeReadIsNoAttempt", func(w *World) {
		readable := time.Now().Add(time.Hour)
		var tries atomic.Int64
		r := w.Add(&Receiver{Policy: domain.QueuePolicy(specDelays, 3), Concurrency: 1, Answer: func(_ context.Context, c delivery.Call) domain.Answer {
			if c.Attempt == 0 {
				return domain.Answer{Status: 500}
			}
			if time.Now().Before(readable) {
				tries.Add(1)
				return domain.Answer{Unread: true, Error: "not now"}
			}
			return domain.Answer{Status: 200}
		}})
		n := w.Start(delivery.Options{})
		w.Publish(n, 1)
		<-time.After(30 * time.Minute)
		n.Kill() // after a crash, the next owner claims the delivery before it calls the receiver
		n = w.Start(delivery.Options{})
		<-time.After(31 * time.Minute)
		require.Less(w, tries.Load(), int64(300), "it backs off")
		n.Stop()
		require.Equal(w, domain.Counters{Triggered: 1, Delivered: 1, Attempts: 2}, w.Standing(r).Counters)
	}},
	{"ALostMessageBecomesADeadLetterWithThisReason", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Answer: func(_ context.Context, c delivery.Call) domain.Answer {
			if c.Entry.Position.Number%2 == 1 {
				return domain.Answer{Lost: true, Error: "it is gone"}
			}
			return domain.Answer{Status: 200}
		}})
		n := w.Start(delivery.Options{})
		w.Publish(n, 10)
		<-time.After(time.Minute)
		n.Stop()
		require.Equal(w, domain.Counters{Triggered: 10, Delivered: 5, Errored: 5, Attempts: 5}, w.Standing(r).Counters)
		dead := w.DeadLetters(r)
		require.Len(w, dead, 5)
		require.Equal(w, "it is gone", dead[0].Reason)
		require.Zero(w, dead[0].Attempts)
	}},
}
