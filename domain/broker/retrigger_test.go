package broker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
)

// allAttempts is long enough for six calls: one immediately, then after pauses of 5, 10, 20, 40 and 80 seconds, each
// varied by up to a fifth.
const allAttempts = 4 * time.Minute

func TestARetriggeredJob_BeginsWithoutAttemptsAndKeepsItsHistory(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status = 500
		n := w.startAlone()
		message := w.broadcastOne(n)
		<-time.After(allAttempts)
		dead := w.jobOf(n, message)
		require.Equal(w, broker.Dead, dead.Status)
		require.Len(w, dead.History, 6)

		require.NoError(w, n.RetriggerJob(w.Context(), consumerCredentials, w.consumer, message))
		<-time.After(2 * time.Second)
		again := w.jobOf(n, message)
		require.Equal(w, broker.RetryDelivery, again.Status)
		require.Equal(w, 1, again.Attempts, "it has begun with none")
		require.Equal(w, dead.History, again.History[:6])
		<-time.After(allAttempts)
		require.Equal(w, broker.Dead, w.jobOf(n, message).Status)
		require.Equal(w, 12, w.countCalls()[domain.EntryID{}])

		require.NoError(w, n.RetriggerMessage(w.Context(), adminCredentials, w.channel, message))
		<-time.After(2 * time.Second)
		require.Equal(w, 1, w.jobOf(n, message).Attempts)
		w.setAnswers(200, 0)
		<-time.After(allAttempts)
		require.Equal(w, broker.Delivered, w.jobOf(n, message).Status)
		require.Equal(w, 14, w.countCalls()[domain.EntryID{}])
	})
}

func TestRetrigger_CreatesNoSecondDeliveryOfALiveJob(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status, w.takes = 500, 10*time.Second
		n := w.startAlone()
		message := w.broadcastOne(n)
		for i, want := range []broker.JobStatus{broker.InFlight, broker.RetryDelivery, broker.RetryInFlight} {
			<-time.After([]time.Duration{8, 4, 8}[i] * time.Second) // a call takes 10 seconds, then the hub pauses for about 5 seconds
			require.Equal(w, want, w.jobOf(n, message).Status)
			err := n.RetriggerJob(w.Context(), consumerCredentials, w.consumer, message)
			require.Equal(w, domain.Conflict, domain.KindOf(err), want)
			require.NoError(w, n.RetriggerJob(w.Context(), adminCredentials, w.consumer, message), "its owner looks at it")
			require.NoError(w, n.RetriggerMessage(w.Context(), adminCredentials, w.channel, message))
		}
		s, err := w.ports.Cursors.Standing(w.Context(), w.consumer.Cursor())
		require.NoError(w, err)
		require.EqualValues(w, 1, s.Counters.Triggered)
		require.Equal(w, 2, w.countCalls()[domain.EntryID{}])
	})
}

func TestAToken_IsComparedInFull(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startNode("a", delivery.Options{})
		_, err := n.DeadLetters(w.Context(), consumerCredentials, w.consumer, domain.EntryID{Number: -1}, 1)
		require.NoError(w, err)
		change := map[string]func(string) string{
			"the beginning": func(s string) string { return s[:len(s)-1] },
			"the first":     func(s string) string { return s[:1] },
			"longer":        func(s string) string { return s + "x" },
			"another case":  func(s string) string { return "C" + s[1:] },
			"a blank":       func(s string) string { return s + " " },
		}
		for what, of := range change {
			_, err := n.Peek(w.Context(), &broker.Credentials{ConsumerToken: of(consumerCredentials.ConsumerToken)}, w.consumer, 1, nil)
			require.ErrorIs(w, err, broker.ErrForbidden, what)
			_, err = n.GetParty(w.Context(), &broker.Credentials{ChannelToken: of(producerCredentials.ChannelToken)}, w.channel)
			require.ErrorIs(w, err, broker.ErrForbidden, what)
			for _, wrong := range []func(c *broker.Credentials){
				func(c *broker.Credentials) { c.ChannelToken = of(c.ChannelToken) },
				func(c *broker.Credentials) { c.ProducerToken = of(c.ProducerToken) },
			} {
				creds := *producerCredentials
				wrong(&creds)
				_, _, err := n.Broadcast(w.Context(), &creds, w.channel, &broker.Broadcast{})
				require.ErrorIs(w, err, broker.ErrForbidden, what)
			}
		}
	})
}
