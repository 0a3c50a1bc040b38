package outcome_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/outcome"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// inBubble runs a test in a synctest bubble, with a new world.
func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newWorld(t)) })
}

func answerWith(status int) domain.Answer { return domain.Answer{Status: status} }

func TestAWait_ReturnsTheOutcomes(t *testing.T) {
	for _, isLocal := range []bool{true, false} {
		inBubble(t, func(w *world) {
			all, some := w.addReceiver(""), w.addReceiver("type == 'b'")
			wait, _ := w.publishIDs("a", "b", "c")
			runAfter(time.Second, func() {
				all.answerCalls(isLocal, answerWith(204), answerWith(500), domain.Answer{Error: "no connection"})
			})
			runAfter(2*time.Second, func() { some.answerCalls(isLocal, answerWith(200)) })
			got, took := w.awaitOutcomes(wait)
			require.Equal(w, []outcome.Outcome{
				{Message: 0, Subscription: all.id, State: outcome.Delivered, Status: 204},
				{Message: 0, Subscription: some.id, State: outcome.Filtered},
				{Message: 1, Subscription: all.id, State: outcome.Failed, Status: 500},
				{Message: 1, Subscription: some.id, State: outcome.Delivered, Status: 200},
				{Message: 2, Subscription: all.id, State: outcome.Failed},
				{Message: 2, Subscription: some.id, State: outcome.Filtered},
			}, got)
			delay := 260 * time.Millisecond // the cursor is read after this time if another node makes the call
			if isLocal {
				delay = 10 * time.Millisecond
			}
			require.InDelta(w, 2*time.Second, took, float64(delay))
		})
	}
}

func TestASender_WaitsUpToItsLimit(t *testing.T) {
	inBubble(t, func(w *world) {
		r, hanging := w.addReceiver(""), w.addReceiver("")
		wait, _ := w.publishIDs("a", "b")
		runAfter(time.Second, func() { r.answerCalls(false, answerWith(200)) })
		got, took := w.awaitOutcomes(wait)
		require.Equal(w, outcome.MaxWait, took)
		require.Equal(w, []outcome.Outcome{
			{Message: 0, Subscription: r.id, State: outcome.Delivered, Status: 200},
			{Message: 0, Subscription: hanging.id, State: outcome.Pending},
			{Message: 1, Subscription: r.id, State: outcome.Pending},
			{Message: 1, Subscription: hanging.id, State: outcome.Pending},
		}, got)
		wait, _ = w.publishIDs("c")
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		require.Equal(w, outcome.Pending, wait.Outcomes(ctx)[0].State)
	})
}

func TestASender_DoesNotWaitForOutcomesAfterItsLimit(t *testing.T) {
	for name, prepare := range map[string]func(w *world, r *receiver){
		"paused by its owner": func(w *world, r *receiver) {
			_, err := w.subscribe.SetPaused(w.Context(), r.owner, r.id, true)
			require.NoError(w, err)
		},
		"paused after 410": func(w *world, r *receiver) {
			w.publishIDs("before")
			r.answerCalls(false, answerWith(410))
		},
		"held for a minute": func(w *world, r *receiver) {
			w.publishIDs("before")
			r.answerCalls(false, domain.Answer{Status: 429, RetryAfter: time.Minute})
		},
		"a cursor that cannot be read": func(w *world, _ *receiver) {
			w.cursors.fail(domain.Errorf(domain.Damaged, "damaged"))
		},
	} {
		inBubble(t, func(w *world) {
			r := w.addReceiver("")
			prepare(w, r)
			wait, _ := w.publishIDs("a")
			got, took := w.awaitOutcomes(wait)
			require.Equal(w, []outcome.Outcome{{Subscription: r.id, State: outcome.Pending}}, got, name)
			require.Less(w, took, time.Second, name)
		})
	}
}

func TestASenderWaits_UntilAHoldEndsAndTheStoreIsBack(t *testing.T) {
	inBubble(t, func(w *world) {
		r := w.addReceiver("")
		w.publishIDs("before")
		r.answerCalls(false, domain.Answer{Status: 429, RetryAfter: 3 * time.Second})
		w.cursors.fail(domain.Errorf(domain.Unavailable, "not reached"))
		runAfter(2*time.Second, func() { w.cursors.fail(nil) })
		wait, _ := w.publishIDs("a")
		runAfter(4*time.Second, func() { r.answerCalls(false, answerWith(200)) })
		got, took := w.awaitOutcomes(wait)
		require.Equal(w, outcome.Delivered, got[0].State)
		require.Less(w, took, 5*time.Second)
	})
}

func TestASenderThatRepeatsAMessage_GetsTheStoredOutcomes(t *testing.T) {
	inBubble(t, func(w *world) {
		r := w.addReceiver("")
		w.publishIDs("old", "failed", "delivered")
		answers := []domain.Answer{answerWith(200), answerWith(500), answerWith(201)}
		for i := range domain.MaxRecent - 2 {
			w.publishIDs(fmt.Sprint(i))
			answers = append(answers, answerWith(200))
		}
		r.answerCalls(false, answers...)
		wait, published := w.publishIDs("old", "failed", "delivered")
		require.Equal(w, 3, published.Duplicates)
		got, took := w.awaitOutcomes(wait)
		require.Less(w, took, time.Second)
		require.Equal(w, []outcome.Outcome{
			{Message: 0, Subscription: r.id, State: outcome.Unknown},
			{Message: 1, Subscription: r.id, State: outcome.Failed, Status: 500},
			{Message: 2, Subscription: r.id, State: outcome.Delivered, Status: 201},
		}, got)
	})
}

// Only the last attempts are stored. If a delivery has ended and has no dead letter, it has
// succeeded. Because a read may be stale, the dead letter must be missing in two reads.
func TestAnOutcomeBehindManyOthers_IsKnownAfterTheSecondRead(t *testing.T) {
	inBubble(t, func(w *world) {
		r := w.addReceiver("")
		wait, _ := w.publishIDs("a")
		answers := []domain.Answer{answerWith(200)}
		for i := range domain.MaxRecent {
			w.publishIDs(fmt.Sprint(i))
			answers = append(answers, answerWith(200))
		}
		r.answerCalls(false, answers...)
		got, took := w.awaitOutcomes(wait)
		require.Equal(w, []outcome.Outcome{{Subscription: r.id, State: outcome.Delivered}}, got)
		require.Greater(w, took, 200*time.Millisecond)
	})
}

// A delivery that failed before its subscription became sync can wait for a further attempt. Its
// outcome is pending.
func TestADeliveryThatWaitsForARetry_IsPending(t *testing.T) {
	inBubble(t, func(w *world) {
		r := w.addReceiver("")
		r.policy = domain.QueuePolicy([]time.Duration{0, time.Hour}, 2)
		wait, _ := w.publishIDs("a")
		r.answerCalls(false, answerWith(500))
		got, _ := w.awaitOutcomes(wait)
		require.Equal(w, outcome.Pending, got[0].State)
	})
}

// After a crash between two steps of a change, the sync list contains a cursor whose subscription
// is not sync. The next sender removes it.
func TestACursorThatIsListedByMistake_IsRemoved(t *testing.T) {
	inBubble(t, func(w *world) {
		wait, _ := w.publishIDs("a")
		require.Nil(w, wait, "no subscription is sync")
		deleted, replaced, kept := w.addReceiver(""), w.addReceiver(""), w.addReceiver("")
		require.NoError(w, w.definitions.DeleteSubscription(w.Context(), deleted.owner, deleted.id, ""))
		d, err := w.definitions.Subscription(w.Context(), replaced.id)
		require.NoError(w, err)
		d.IsSync = false
		_, err = w.definitions.ReplaceSubscription(w.Context(), d)
		require.NoError(w, err)
		wait, published := w.publishIDs("b")
		require.Len(w, published.Awaited[0].Sync, 3)
		runAfter(time.Second, func() { kept.answerCalls(false, answerWith(200)) })
		got, _ := w.awaitOutcomes(wait)
		require.Equal(w, []outcome.Outcome{{Subscription: kept.id, State: outcome.Delivered, Status: 200}}, got)
		_, published = w.publishIDs("c")
		require.Equal(w, []domain.CursorID{kept.id.Cursor()}, published.Awaited[0].Sync)

		// The owner repeats the request that the crash interrupted.
		_, _, err = w.subscribe.Put(w.Context(), replaced.id, subscribe.Draft{Subscription: domain.Subscription{
			Owner: replaced.owner, CallbackURL: "https://example.org/", IsSync: true,
		}}, subscribe.Match{})
		require.NoError(w, err)
		_, published = w.publishIDs("d")
		require.Len(w, published.Awaited[0].Sync, 2)
	})
}

func TestSendersThatWaitForACursor_ShareItsReads(t *testing.T) {
	inBubble(t, func(w *world) {
		r := w.addReceiver("")
		var g sync.WaitGroup
		const senders = 200
		answers := make([]domain.Answer, senders)
		for i := range senders {
			answers[i] = answerWith(200)
			wait, _ := w.publishIDs(fmt.Sprint(i))
			g.Go(func() {
				<-time.After(time.Duration(i) * time.Millisecond)
				if got := wait.Outcomes(w.Context()); got[0].State != outcome.Delivered {
					w.Errorf("sender %d: %v", i, got)
				}
			})
		}
		runAfter(5*time.Second, func() { r.answerCalls(true, answers...) })
		g.Wait()
		require.Less(w, w.cursors.reads, 300, "for 200 senders that wait for 5 seconds")
	})
}
