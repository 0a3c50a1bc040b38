package deliverytest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// compileEvery compiles filters of replays: "every 3" matches the entries whose numbers are
// multiples of 3.
func compileEvery(expression string) (func(*repository.Entry) bool, error) {
	n, err := strconv.ParseInt(expression[len("every "):], 10, 64)
	return func(e *repository.Entry) bool { return e.Position.Number%n == 0 }, err
}

// Replay requests a replay, and notifies n unless n is nil.
func (w *World) Replay(n *Node, r *Receiver, request domain.ReplayRequest) {
	w.Helper()
	standing, err := w.Stores.Cursors.Standing(context.Background(), r.ID)
	require.NoError(w, err)
	w.mu.Lock()
	w.requests++
	request.ID = fmt.Sprint("request-", w.requests)
	w.mu.Unlock()
	_, err = w.Stores.Shards.AddReplay(context.Background(), r.ID, standing.Followed, request)
	require.NoError(w, err)
	if n != nil {
		n.Changed(r.ID)
	}
}

func replayOf(number int64) domain.ReplayRequest {
	return domain.ReplayRequest{Delivery: &domain.ReplayDelivery{Position: domain.Position{EntryID: domain.EntryID{Number: number}}, Published: time.Now()}}
}

// rangeOf returns a request to replay all ended deliveries at a rate.
func rangeOf(rate int) domain.ReplayRequest {
	return domain.ReplayRequest{Range: &domain.ReplayRange{From: time.Unix(0, 0), To: time.Now().Add(time.Hour), Rate: rate}}
}

// storedStanding returns the stored standing of a receiver's cursor.
func (w *World) storedStanding(r *Receiver) domain.Standing {
	w.Helper()
	s, err := w.Stores.Cursors.Standing(context.Background(), r.ID)
	require.NoError(w, err)
	return s
}

var replayRules = []deliveryRule{
	{"ADeadLetterThatIsReplayedIsCalledAgain", func(w *World) {
		fails := true
		r := w.Add(&Receiver{Policy: domain.QueuePolicy([]time.Duration{0, time.Minute}, 2), Answer: func(context.Context, delivery.Call) domain.Answer {
			if fails {
				return domain.Answer{Status: 500}
			}
			return domain.Answer{Status: 200}
		}})
		n := w.Start(delivery.Options{})
		w.Publish(n, 1)
		<-time.After(10 * time.Minute)
		require.Len(w, w.DeadLetters(r), 1)
		fails = false
		w.Replay(n, r, replayOf(0))
		<-time.After(time.Second)
		require.Len(w, r.Taken(), 1)
		require.Empty(w, w.DeadLetters(r))
		n.Stop()
		require.Equal(w, domain.Counters{Triggered: 2, Delivered: 1, Errored: 1, Attempts: 3}, w.Standing(r).Counters)
	}},
	{"ARequestWithoutASignalIsFoundByALook", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		w.Publish(n, 3)
		<-time.After(time.Hour)
		w.Replay(nil, r, replayOf(1))
		<-time.After(31 * time.Second)
		require.Equal(w, map[domain.EntryID]int{{Number: 0}: 1, {Number: 1}: 2, {Number: 2}: 1}, r.Taken())
		n.Stop()
	}},
	{"AReplayOfARangeKeepsItsRateAndDelaysNoFreshMessages", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Concurrency: 2, Answer: After(10*time.Millisecond, 200)})
		n := w.Start(delivery.Options{})
		w.Publish(n, 300)
		<-time.After(time.Minute)
		calls := len(r.Calls())
		require.Equal(w, 300, calls)
		w.Replay(n, r, rangeOf(5))
		<-time.After(20 * time.Second)
		require.InDelta(w, calls+20*5, len(r.Calls()), 3)
		w.Publish(n, 10)
		<-time.After(time.Second)
		require.Len(w, r.Taken(), 310, "fresh ones are not held up")
		<-time.After(time.Minute)
		n.Stop()
		s := w.Standing(r)
		require.Equal(w, domain.ReplayDone, s.Replay.State)
		require.EqualValues(w, 300, s.Replay.Matched)
		require.Len(w, r.Calls(), 610)
		require.Equal(w, domain.Counters{Triggered: 610, Delivered: 610, Attempts: 610}, s.Counters)
	}},
	{"AReplayOfARangeMatchesTimeFilterAndReceiver", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy(), Matches: func(e *repository.Entry) bool { return e.Position.Number%2 == 0 }})
		n := w.Start(delivery.Options{})
		var times []time.Time
		for range 4 {
			times = append(times, w.Clock.Now())
			w.Publish(n, 30)
			<-time.After(time.Minute)
		}
		w.Replay(n, r, domain.ReplayRequest{Range: &domain.ReplayRange{From: times[1], To: times[3], Filter: "every 3", Rate: 100}})
		<-time.After(time.Minute)
		for e, count := range r.Taken() {
			want := 1
			if e.Number >= 30 && e.Number < 90 && e.Number%6 == 0 {
				want = 2
			}
			require.Equal(w, want, count, e)
		}
		n.Stop()
		s := w.Standing(r)
		require.Equal(w, domain.ReplayDone, s.Replay.State)
		require.EqualValues(w, 10, s.Replay.Matched)
		require.EqualValues(w, 70, s.Counters.Triggered)
	}},
	{"AReplayOfDeadLettersCallsNoOthers", func(w *World) {
		fails := true
		r := w.Add(&Receiver{Policy: domain.QueuePolicy([]time.Duration{0, time.Minute}, 2), Answer: func(_ context.Context, c delivery.Call) domain.Answer {
			if fails && c.Entry.Position.Number%4 == 0 {
				return domain.Answer{Status: 500}
			}
			return domain.Answer{Status: 200}
		}})
		n := w.Start(delivery.Options{})
		w.Publish(n, 600)
		<-time.After(10 * time.Minute)
		require.Len(w, w.DeadLetters(r), 150)
		fails = false
		request := rangeOf(1000)
		request.Range.OnlyDead, request.Range.Filter = true, "every 3"
		calls := len(r.Calls())
		w.Replay(n, r, request)
		<-time.After(time.Minute)
		require.Len(w, r.Calls(), calls+50)
		require.Len(w, w.DeadLetters(r), 100)
		n.Stop()
		s := w.Standing(r)
		require.Equal(w, domain.ReplayDone, s.Replay.State)
		require.Equal(w, domain.Counters{Triggered: 650, Delivered: 500, Errored: 150, Attempts: 800}, s.Counters)
	}},
	{"AStoppedReplayMakesNoMoreCalls", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		w.Publish(n, 100)
		<-time.After(time.Minute)
		w.Replay(n, r, rangeOf(1))
		<-time.After(10 * time.Second)
		w.Replay(n, r, domain.ReplayRequest{Stop: w.storedStanding(r).Replay.ID})
		<-time.After(time.Second)
		calls := len(r.Calls())
		require.InDelta(w, 110, calls, 2)
		<-time.After(time.Minute)
		require.Len(w, r.Calls(), calls)
		require.Equal(w, domain.ReplayStopped, w.storedStanding(r).Replay.State)
		n.Stop()
	}},
	{"AReplayWaitsWhileItsReceiverIsPaused", func(w *World) {
		r := w.Add(&Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		w.Publish(n, 10)
		<-time.After(time.Minute)
		w.Change(n, r, true)
		w.Replay(n, r, rangeOf(100))
		<-time.After(time.Hour)
		require.Len(w, r.Calls(), 10)
		w.Change(n, r, false)
		<-time.After(time.Minute)
		require.Len(w, r.Calls(), 20)
		n.Stop()
	}},
	{"AKillAtAnyWriteOfAReplayLosesNothing", func(w *World) {
		const messages, concurrency = 8, 3
		for writes := 1; ; writes++ {
			w := w.anotherWorld()
			r := w.troubledReceiver(concurrency)
			a := w.Start(delivery.Options{CheckInterval: time.Hour})
			w.Publish(a, messages)
			<-time.After(10 * time.Minute)
			a.CutAfter(writes)
			w.Replay(a, r, rangeOf(20))
			w.Replay(a, r, replayOf(3))
			<-time.After(10 * time.Minute)
			isCut := a.IsCut()
			a.Kill()
			before := w.storedStanding(r).Counters
			b := w.Start(delivery.Options{CheckInterval: time.Hour})
			<-time.After(20 * time.Minute)
			b.Stop()
			s := w.Standing(r)
			require.Equal(w, 2, s.Followed)
			require.Equal(w, domain.ReplayDone, s.Replay.State)
			// The requested dead letter may be outstanding when the replay of the range reaches
			// it.
			require.EqualValues(w, messages, s.Replay.Matched+s.Replay.Skipped)
			replayed := s.Counters.Triggered - messages
			require.Contains(w, []int64{messages, messages + 1}, replayed, "each is replayed once")
			require.Zero(w, s.Outstanding())
			require.Equal(w, s.Counters.Triggered, s.Counters.Delivered+s.Counters.Errored, "P2")
			require.Len(w, w.DeadLetters(r), messages/4)
			untraced := len(r.Calls()) - int(s.Counters.Attempts)
			require.GreaterOrEqual(w, untraced, 0)
			require.LessOrEqual(w, untraced, concurrency*w.takeoversOf(r), "P5: calls without a trace")
			if !isCut {
				require.Greater(w, writes, 5)
				require.Equal(w, before, s.Counters)
				return
			}
		}
	}},
}
