package deliverytest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
)

// troubledReceiver adds a receiver whose deliveries end in every possible way: of four
// messages, two are delivered by the first attempt, one by the second attempt, and one becomes
// a dead letter.
func (w *World) troubledReceiver(concurrency int) *Receiver {
	return w.Add(&Receiver{
		Policy:      domain.QueuePolicy([]time.Duration{0, time.Minute, time.Minute}, 3),
		Concurrency: concurrency,
		Answer: func(ctx context.Context, c delivery.Call) domain.Answer {
			a := After(time.Second, 200)(ctx, c)
			n := c.Entry.Position.Number % 4
			if a.Status == 200 && (n == 1 && c.Attempt == 0 || n == 3) {
				a.Status = 500
			}
			return a
		},
	})
}

// checkEnded requires that the deliveries of n messages to a troubled receiver have ended, once
// each.
func (w *World) checkEnded(r *Receiver, n int) {
	w.Helper()
	s := w.Standing(r)
	dead := n / 4
	require.EqualValues(w, n, s.Counters.Triggered, "P1")
	require.EqualValues(w, n-dead, s.Counters.Delivered, "P1")
	require.EqualValues(w, dead, s.Counters.Errored, "P1")
	require.Zero(w, s.Outstanding())
	require.Len(w, r.Taken(), n-dead, "P4")
	require.Len(w, w.DeadLetters(r), dead)
	for _, c := range r.Calls() {
		require.Less(w, c.Attempt, r.Policy.Attempts, "P8")
	}
	untraced := len(r.Calls()) - int(s.Counters.Attempts)
	require.GreaterOrEqual(w, untraced, 0, "P8: an attempt is counted once")
	// Each take-over may lose the results of up to Concurrency calls.
	require.LessOrEqual(w, untraced, r.Concurrency*w.takeoversOf(r), "P5: calls without a trace")
}

var troubleRules = []deliveryRule{
	{"AKillAtAnyWriteLosesNothing", func(w *World) { // DSS-28
		const messages, concurrency = 8, 3
		for writes := 1; ; writes++ {
			w := w.anotherWorld()
			r := w.troubledReceiver(concurrency)
			a := w.Start(delivery.Options{CheckInterval: time.Hour})
			a.CutAfter(writes)
			w.Publish(a, messages)
			<-time.After(10 * time.Minute)
			isCut := a.IsCut()
			a.Kill()
			calls := len(r.Calls())
			b := w.Start(delivery.Options{CheckInterval: time.Hour})
			<-time.After(10 * time.Minute)
			b.Stop()
			w.checkEnded(r, messages)
			if !isCut {
				require.Greater(w, writes, 5)
				require.Len(w, r.Calls(), calls, "nothing is called again")
				return
			}
		}
	}},
	{"TwoNodesThatOwnTheSameCursorsLoseNothing", func(w *World) {
		const messages = 40
		r := w.troubledReceiver(4)
		a, b := w.Start(delivery.Options{}), w.Start(delivery.Options{})
		for i := range messages / 4 {
			w.Publish([]*Node{a, b}[i%2], 4)
			<-time.After(15 * time.Second)
		}
		<-time.After(20 * time.Minute)
		a.Stop()
		b.Stop()
		w.checkEnded(r, messages)
		require.Less(w, len(r.Calls()), 4*messages, "they do not call in a burst")
	}},
	{"ANodeThatPausedForAMinuteLosesNothing", func(w *World) {
		const messages = 20
		r := w.troubledReceiver(4)
		a := w.Start(delivery.Options{})
		w.Publish(a, messages)
		<-time.After(1500 * time.Millisecond)
		thaw := a.Freeze()
		b := w.Start(delivery.Options{})
		<-time.After(time.Minute)
		thaw()
		<-time.After(20 * time.Minute)
		a.Stop()
		b.Stop()
		w.checkEnded(r, messages)
		require.Less(w, len(r.Calls()), 2*(messages/2+messages/4*2+messages/4*3), "each is called again at most once")
	}},
	{"AClockThatIsAnHourOffCausesNoBurstOfCalls", func(w *World) {
		const messages, step = 30, 10 * time.Minute
		delays := []time.Duration{0, step, step, step, step, step, step, step, step}
		r := w.Add(&Receiver{Policy: domain.QueuePolicy(delays, len(delays)), Answer: Status(500)})
		n := w.Start(delivery.Options{})
		w.Publish(n, messages)
		<-time.After(5 * time.Minute)
		attempts := func() int { return len(r.Calls()) / messages }
		require.Equal(w, 1, attempts())
		w.Clock.Set(time.Hour)
		<-time.After(step - time.Minute)
		require.Equal(w, 2, attempts(), "one attempt each is early")
		<-time.After(2*time.Minute + step)
		require.Equal(w, 4, attempts(), "the next ones are not")
		w.Clock.Set(0)
		<-time.After(step - time.Minute)
		require.Equal(w, 4, attempts(), "no attempt is early")
		<-time.After(2 * time.Minute)
		require.Equal(w, 5, attempts(), "they are late by less than a step, not by an hour")
		n.Stop()
		m := w.Start(delivery.Options{})
		<-time.After(5 * step)
		m.Stop()
		require.Len(w, w.DeadLetters(r), messages)
		require.Len(w, r.Calls(), messages*len(delays))
	}},
	{"AMessageThatCrashesNodesEndsFewOfThem", func(w *World) { // P9
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Concurrency: 4})
		var kills atomic.Int32
		r.Answer = func(ctx context.Context, c delivery.Call) domain.Answer {
			if c.Entry.Position.Number == 2 {
				kills.Add(1)
				nodeOf(ctx).line.cut()
				nodeOf(ctx).cancel()
				<-ctx.Done()
				return domain.Answer{Error: "the node has ended"}
			}
			return domain.Answer{Status: 200}
		}
		w.Publish(nil, 10)
		for range domain.MaxClaims + 3 {
			victim := w.Start(delivery.Options{})
			<-time.After(2 * time.Minute)
			victim.Stop()
		}
		require.EqualValues(w, domain.MaxClaims+1, kills.Load())
		require.Len(w, r.Taken(), 9)
		require.Len(w, w.DeadLetters(r), 1)
	}},
}
