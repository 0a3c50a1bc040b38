package inspect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// requireSentence fails the test unless one sentence of an explanation contains text.
func requireSentence(t *testing.T, x *inspect.Explanation, text string) {
	t.Helper()
	require.Contains(t, strings.Join(x.Sentences, "\n"), text)
}

func actionsOf(x *inspect.Explanation) (paths []string) {
	for _, a := range x.Actions {
		paths = append(paths, a.Method+" "+a.Path[strings.LastIndex(a.Path, "/")+1:])
	}
	return paths
}

func TestAnExplanation_NamesTheDeliveryBefore(t *testing.T) {
	w := newWorld(t, "")
	w.publishTypes(0, "a", "b", "c")
	w.publishTypes(7, "d")
	x := w.explain(0, 2)
	require.Equal(t, inspect.CauseTurn, x.Cause)
	require.EqualValues(t, 3, x.Behind)
	require.Equal(t, 3, x.AttemptsLeft)
	requireSentence(t, x, "3 messages are before it and were not taken yet: 2 of its priority, and 1 of higher ones.")
	requireSentence(t, x, "The delivery has 3 attempts left.")
	x = w.explain(7, 0)
	require.Zero(t, x.Behind)
	requireSentence(t, x, "It is the next message")
}

func TestAnExplanation_SaysWhenTheNextAttemptIsDue(t *testing.T) {
	w := newWorld(t, "")
	w.publishTypes(0, "a")
	w.callWith(domain.Answer{Status: 500, Error: "the receiver failed (500)"})
	x := w.explain(0, 0)
	require.Equal(t, inspect.CauseBackoff, x.Cause)
	require.Equal(t, x.Due, x.NextAttempt)
	require.Equal(t, 2, x.AttemptsLeft)
	requireSentence(t, x, "Attempt 1 failed at 2030-01-01T12:00:00Z after 120ms: the receiver failed (500).")
	requireSentence(t, x, "The delivery has 2 attempts left.")
	w.now = w.now.Add(time.Hour)
	require.Equal(t, inspect.CauseDue, w.explain(0, 0).Cause)
}

func TestAnExplanation_SaysThatAnOrderedSubscriptionWaits(t *testing.T) {
	w := newWorld(t, "")
	_, _, err := w.subscribe.Put(t.Context(), w.id, subscribe.Draft{
		Subscription: domain.Subscription{Owner: w.owner, CallbackURL: "https://example.org/", IsOrdered: true},
	}, subscribe.Match{})
	require.NoError(t, err)
	w.ordered = true
	w.publishTypes(0, "a", "b", "c")
	require.Equal(t, inspect.CauseTurn, w.explain(0, 2).Cause)
	w.callWith(domain.Answer{Status: 500, Error: "the receiver failed (500)"})
	x := w.explain(0, 2)
	require.Equal(t, inspect.CauseOrder, x.Cause)
	requireSentence(t, x, "delivery "+w.delivery(0, 0).String()+" before it has failed")
	require.Equal(t, w.explain(0, 0).Due, x.NextAttempt)
	require.Equal(t, inspect.CauseBackoff, w.explain(0, 0).Cause)
	_, err = w.subscribe.SetPaused(t.Context(), w.owner, w.id, true)
	require.NoError(t, err)
	x = w.explain(0, 2)
	require.Equal(t, inspect.CausePaused, x.Cause)
	require.True(t, x.NextAttempt.IsZero())
}

func TestAnExplanation_SaysWhyTheReceiverIsNotCalled(t *testing.T) {
	t.Run("held", func(t *testing.T) {
		w := newWorld(t, "")
		w.publishTypes(0, "a", "b")
		w.callWith(domain.Answer{Status: 429, Error: "too often", RetryAfter: 2 * time.Hour})
		x := w.explain(0, 1)
		require.Equal(t, inspect.CauseHeld, x.Cause)
		require.WithinDuration(t, w.now.Add(2*time.Hour), x.HeldUntil, time.Second)
		require.Equal(t, x.HeldUntil, x.NextAttempt)
		require.Equal(t, x.HeldUntil, w.explain(0, 0).NextAttempt, "it is due before")
		require.Contains(t, actionsOf(x), "POST resume")
	})
	t.Run("gone", func(t *testing.T) {
		w := newWorld(t, "")
		w.publishTypes(0, "a", "b")
		w.callWith(domain.Answer{Status: 410, Error: "gone"})
		x := w.explain(0, 1)
		require.Equal(t, inspect.CauseGone, x.Cause)
		require.NotEmpty(t, x.PausedFor)
		require.True(t, x.NextAttempt.IsZero())
		_, err := w.subscribe.SetPaused(t.Context(), w.owner, w.id, false)
		require.NoError(t, err)
		require.Equal(t, inspect.CauseTurn, w.explain(0, 1).Cause)
	})
	t.Run("paused", func(t *testing.T) {
		w := newWorld(t, "")
		w.publishTypes(0, "a", "b")
		w.callWith(domain.Answer{})
		_, err := w.subscribe.SetPaused(t.Context(), w.owner, w.id, true)
		require.NoError(t, err)
		require.Equal(t, inspect.CausePaused, w.explain(0, 1).Cause)
		require.Equal(t, inspect.Waiting, w.explain(0, 0).State, "it was taken, and is not called")
		require.Equal(t, inspect.CausePaused, w.explain(0, 0).Cause)
	})
	t.Run("breaker", func(t *testing.T) {
		w := newWorld(t, "")
		w.policy.BreakAfter = 2
		w.publishTypes(0, "a", "b", "c")
		w.callWith(domain.Answer{Status: 500}, domain.Answer{Status: 500})
		x := w.explain(0, 2)
		require.Equal(t, inspect.CauseBreaker, x.Cause)
		requireSentence(t, x, "2 calls in a row failed")
		require.Equal(t, x.BreakerUntil, x.NextAttempt)
	})
	t.Run("unprepared", func(t *testing.T) {
		w := newWorld(t, "")
		w.publishTypes(0, "a")
		w.failures = domain.Errorf(domain.Unavailable, "no key in /etc/keys")
		x := w.explain(0, 0)
		require.Equal(t, inspect.CauseUnprepared, x.Cause)
		require.NotContains(t, strings.Join(x.Sentences, " "), "/etc")
	})
}

func TestAnExplanation_SaysThatNodesEnded(t *testing.T) {
	w := newWorld(t, "")
	w.publishTypes(0, "a")
	w.callWith(domain.Answer{Status: 500, Error: "the receiver failed (500)"})
	w.now = w.now.Add(time.Hour)
	for i := range domain.MaxClaims {
		w.node = fmt.Sprint("node ", i)
		w.callWith(domain.Answer{}) // the zero Answer simulates that the node dies during the call
	}
	x := w.explain(0, 0)
	require.Equal(t, inspect.Retrying, x.State)
	requireSentence(t, x, "2 nodes died while they called the receiver with the message. After 3, the delivery becomes a dead letter.")
	w.node = "the last node"
	w.callWith()
	x = w.explain(0, 0)
	require.Equal(t, inspect.Dead, x.State)
	require.Equal(t, inspect.CausePoison, x.Cause)
	requireSentence(t, x, "every node that called with it ended")
}

func TestAnExplanation_SaysHowADeliveryEnded(t *testing.T) {
	w := newWorld(t, "type != 'c'")
	w.publishTypes(0, "a", "b", "c")
	w.callWith(domain.Answer{Status: 204}, domain.Answer{Status: 400, Error: "the receiver refused the message (400)"})
	x := w.explain(0, 0)
	require.Equal(t, inspect.CauseAccepted, x.Cause)
	requireSentence(t, x, "with attempt 1 and status 204")
	for range 2 {
		w.now = w.now.Add(3 * time.Hour)
		w.callWith(domain.Answer{Status: 400, Error: "the receiver refused the message (400)"})
	}
	x = w.explain(0, 1)
	require.Equal(t, inspect.Dead, x.State)
	require.Equal(t, inspect.CauseSpent, x.Cause)
	requireSentence(t, x, "It is a dead letter: the last attempt failed.")
	require.Equal(t, []string{"POST replay"}, actionsOf(x))
	x = w.explain(0, 2)
	require.Equal(t, inspect.CauseFilter, x.Cause)
	requireSentence(t, x, "type != 'c'")
	w.now = w.now.Add(50 * time.Hour)
	w.publishTypes(0, "d")
	require.Equal(t, inspect.Expired, w.explain(0, 2).State)
	require.Equal(t, inspect.CauseExpired, w.explain(0, 2).Cause)
}
