package broker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// startAlone starts a single node, with options that make days of simulated time cheap.
func (w *fetchWorld) startAlone() *fetchNode {
	w.nodes = nil
	return w.startNode("a", delivery.Options{CheckInterval: 24 * time.Hour})
}

// jobOf returns the only job of a message.
func (w *fetchWorld) jobOf(n *fetchNode, message string) broker.Job {
	w.Helper()
	m, err := n.Message(w.Context(), adminCredentials, w.channel, message, nil)
	require.NoError(w, err)
	require.Len(w, m.Jobs, 1)
	return m.Jobs[0]
}

// broadcastOne sends a message through a node and returns the id of the message.
func (w *fetchWorld) broadcastOne(n *fetchNode) string {
	w.Helper()
	message, _, err := n.Broadcast(w.Context(), producerCredentials, w.channel, &broker.Broadcast{Payload: []byte(`{}`)})
	require.NoError(w, err)
	return message
}

func TestAJob_IsEndedOnceItsDeadLetterIsRemoved(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startAlone()
		w.awaitSharing()
		delivered := w.broadcastOne(n)
		<-time.After(time.Second)
		w.setAnswers(500, 0)
		dead := w.broadcastOne(n)
		<-time.After(repository.DeadLetterRetention - time.Minute)
		require.Equal(w, broker.Delivered, w.jobOf(n, delivered).Status)
		require.Equal(w, broker.Dead, w.jobOf(n, dead).Status)

		<-time.After(time.Hour)
		for _, message := range []string{delivered, dead} {
			require.Equal(w, broker.Ended, w.jobOf(n, message).Status, "which one was delivered is no longer stored")
			err := n.RetriggerJob(w.Context(), adminCredentials, w.consumer, message)
			require.Equal(w, domain.Conflict, domain.KindOf(err))
			require.ErrorContains(w, err, "the job is Delivered, or its dead letter was removed")
			err = n.RetriggerMessage(w.Context(), adminCredentials, w.channel, message)
			require.Equal(w, domain.Conflict, domain.KindOf(err))
		}
	})
}

func TestAJob_OfAConsumerWithoutDeadLettersIsNeverEnded(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startAlone()
		w.awaitSharing()
		message := w.broadcastOne(n)
		<-time.After(repository.DeadLetterRetention + time.Hour)
		require.Equal(w, broker.Delivered, w.jobOf(n, message).Status)
	})
}

func TestAJob_IsDeadIfItsMessageExpiredBeforeItWasTaken(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startAlone()
		w.awaitSharing()
		message := w.broadcastOne(n)
		<-time.After(time.Second)
		n.stop()
		e, _ := domain.ParseMessageID(message)
		c, version, err := w.ports.Cursors.Load(w.Context(), w.consumer.Cursor(), domain.Owner{Incarnation: "x", Limit: 1, Policy: domain.BrokerPolicy(time.Second, 1)}, time.Now)
		require.NoError(w, err)
		s := c.Settlement()
		s.Standing.Expiries = []domain.Expiry{{From: e, To: e.Number + 1, At: time.Now()}}
		_, err = w.ports.Cursors.Settle(w.Context(), w.consumer.Cursor(), version, s)
		require.NoError(w, err)

		j := w.jobOf(n, message)
		require.Equal(w, broker.Dead, j.Status)
		require.Contains(w, j.Reason, "its retention had passed")
		require.Equal(w, domain.Conflict, domain.KindOf(n.RetriggerJob(w.Context(), adminCredentials, w.consumer, message)))
		require.Equal(w, domain.Conflict, domain.KindOf(n.RetriggerMessage(w.Context(), adminCredentials, w.channel, message)))
	})
}
