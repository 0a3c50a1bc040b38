package deliverytest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

type deliveryRule struct {
	name string
	test func(w *World)
}

// Run tests the promises of engines over the stores that open returns. Each case runs in a
// separate synctest bubble, in which it calls open.
func Run(t *testing.T, open func(t *testing.T, clock *Clock) repositorytest.PushStores) {
	RunOneOf(t, 1, open)
}

// RunOneOf runs every n-th of the cases of [Run].
func RunOneOf(t *testing.T, n int, open func(t *testing.T, clock *Clock) repositorytest.PushStores) {
	for i, r := range slices.Concat(rules, queueRules, receiverRules, rateRules, ownerRules, unreadRules, troubleRules, nodesRules, takeoverRules, replayRules, priorityRules, orderRules, fetchRules, watchRules) {
		if i%n != 0 {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r.test(NewWorld(t, func(clock *Clock) repositorytest.PushStores { return open(t, clock) }))
			})
		})
	}
}

// specDelays are the delays of the queues in the specification.
var specDelays = func() []time.Duration {
	delays := []time.Duration{0, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 60_540 * time.Second}
	for range 6 {
		delays = append(delays, 24*time.Hour)
	}
	return delays
}()

var rules = []deliveryRule{
	{"PublishedMessagesAreDeliveredImmediately", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		start := time.Now()
		w.Publish(n, 200)
		synctest.Wait()
		require.Len(w, r.Taken(), 200)
		require.Len(w, r.Calls(), 200, "no message twice")
		require.WithinDuration(w, start, time.Now(), time.Second)
		n.Stop()
		s := w.Standing(r)
		require.Equal(w, domain.Counters{Triggered: 200, Delivered: 200, Attempts: 200}, s.Counters)
		require.Nil(w, s.Caution, "it was released")
	}},
	{"MessagesOfOtherNodesAreFoundByALook", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		<-time.After(time.Hour)
		w.Publish(nil, 300)
		<-time.After(31 * time.Second)
		require.Len(w, r.Taken(), 300)
		n.Stop()
	}},
	{"AttemptsFollowTheScheduleOfTheQueues", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.QueuePolicy(specDelays, len(specDelays)), Answer: Status(500)})
		n := w.Start(delivery.Options{CheckInterval: time.Hour})
		synctest.Wait()
		start := time.Now()
		w.Publish(n, 1)
		<-time.After(8 * 24 * time.Hour)
		n.Stop()
		calls := r.Calls()
		require.Len(w, calls, len(specDelays))
		want := start
		for i, c := range calls {
			want = want.Add(specDelays[i])
			require.Equal(w, i, c.Attempt)
			require.WithinDuration(w, want, c.At, time.Second, "attempt %d", i)
			require.False(w, c.At.Before(want), "no attempt before its due time")
		}
		dead := w.DeadLetters(r)
		require.Len(w, dead, 1)
		require.Len(w, dead[0].History, len(specDelays))
		require.Equal(w, domain.Counters{Triggered: 1, Errored: 1, Attempts: 12}, w.Standing(r).Counters)
	}},
}
