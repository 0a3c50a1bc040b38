package broker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peekBundle peeks through node n, and fails the test on an error.
func (w *fetchWorld) peekBundle(n *fetchNode, limit int) *broker.Bundle {
	w.Helper()
	b, err := n.Peek(w.Context(), consumerCredentials, w.consumer, limit, nil)
	require.NoError(w, err)
	return b
}

func (w *fetchWorld) dequeues(n *fetchNode, b *broker.Bundle) {
	w.Helper()
	require.NoError(w, n.Dequeue(w.Context(), consumerCredentials, w.consumer, b.ID))
}

// awaitSharing waits until the nodes have divided the shards among them, which they do again after a node dies.
func (w *fetchWorld) awaitSharing() { <-time.After(20 * time.Second) }

// countMessages adds the messages of a bundle to counts.
func countMessages(counts map[domain.EntryID]int, b *broker.Bundle) {
	for _, m := range b.Messages {
		e, _ := domain.ParseMessageID(m.ID)
		counts[e]++
	}
}

func TestPeek_ReturnsOneBundleUntilItIsDequeued(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status = 500
		n := w.startNode("a", delivery.Options{})
		w.awaitSharing()
		require.Nil(w, w.peekBundle(n, 5), "nothing waits")
		w.broadcast(n, 3, 0)
		w.broadcast(n, 3, 9)
		<-time.After(time.Second)
		first := w.peekBundle(n, 4)
		require.Len(w, first.Messages, 4)
		require.Equal(w, []int{9, 9, 9, 0}, []int{first.Messages[0].Priority, first.Messages[1].Priority, first.Messages[2].Priority, first.Messages[3].Priority})
		require.JSONEq(w, `{}`, string(first.Messages[0].Payload))
		require.Equal(w, first, w.peekBundle(n, 1))
		w.dequeues(n, first)
		w.dequeues(n, first)
		second := w.peekBundle(n, 4)
		require.Len(w, second.Messages, 2)
		require.NotEqual(w, first.ID, second.ID)
		w.dequeues(n, second)
		require.Nil(w, w.peekBundle(n, 4))
		s, err := w.ports.Cursors.Standing(w.Context(), w.consumer.Cursor())
		require.NoError(w, err)
		require.EqualValues(w, 6, s.Counters.Delivered)
	})
}

// TestPeek_ReturnsMessagesThatNoCallGets tests rule P15: a message in a bundle is not also delivered by a call.
func TestPeek_ReturnsMessagesThatNoCallGets(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.takes = 20 * time.Millisecond
		n := w.startNode("a", delivery.Options{Concurrency: 2})
		w.awaitSharing()
		fetched := make(map[domain.EntryID]int)
		for range 30 {
			w.broadcast(n, 10, 0)
			<-time.After(time.Millisecond)
			if b := w.peekBundle(n, 3); b != nil {
				countMessages(fetched, b)
				<-time.After(30 * time.Millisecond)
				w.dequeues(n, b)
			}
		}
		<-time.After(time.Minute)
		calls := w.countCalls()
		require.Greater(w, len(fetched), 30)
		require.Len(w, calls, 300-len(fetched))
		for e, count := range fetched {
			require.Equal(w, 1, count, e)
			require.Zero(w, calls[e], "%v came by a call and in a bundle", e)
		}
	})
}

func TestPeek_TakesMillisecondsInOneProcess(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status = 500
		n := w.startNode("a", delivery.Options{})
		w.awaitSharing()
		w.broadcast(n, 3, 0)
		<-time.After(time.Second)
		began := time.Now()
		w.dequeues(n, w.peekBundle(n, 3))
		require.Less(w, time.Since(began), 10*time.Millisecond)
	})
}

func TestFetch_WorksOnANodeThatDoesNotOwnTheCursor(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status = 500
		a, b := w.startNode("a", delivery.Options{}), w.startNode("b", delivery.Options{})
		w.awaitSharing()
		w.broadcast(a, 3, 0)
		<-time.After(2 * time.Second)
		bundle := w.peekBundle(a, 3)
		require.Len(w, bundle.Messages, 3)
		require.Equal(w, bundle, w.peekBundle(b, 3))
		w.dequeues(b, bundle)
		w.dequeues(a, bundle)
		require.Nil(w, w.peekBundle(a, 3))
	})
}

func TestABundle_IsTheSameAfterATakeOver(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status = 500
		a := w.startNode("a", delivery.Options{})
		w.awaitSharing()
		w.broadcast(a, 3, 0)
		<-time.After(2 * time.Second)
		bundle := w.peekBundle(a, 3)
		calls := len(w.countCalls())
		a.stop()
		b := w.startNode("b", delivery.Options{})
		w.awaitSharing()
		<-time.After(time.Hour)
		require.Equal(w, bundle, w.peekBundle(b, 3))
		require.Len(w, w.countCalls(), calls)
		w.dequeues(b, bundle)
	})
}

func TestPeeksAtTheSameTime_ReturnOneBundle(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status = 500
		n := w.startNode("a", delivery.Options{})
		w.awaitSharing()
		w.broadcast(n, 20, 0)
		<-time.After(time.Second)
		bundles := make([]*broker.Bundle, 8)
		var all sync.WaitGroup
		for i := range bundles {
			all.Go(func() { bundles[i], _ = n.Peek(w.Context(), consumerCredentials, w.consumer, 1+i, nil) })
		}
		all.Wait()
		for _, b := range bundles {
			require.Equal(w, bundles[0], b)
		}
	})
}

func TestFetch_FailsInTimeWithoutANode(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startNode("a", delivery.Options{})
		n.stop()
		w.broadcast(n, 1, 0)
		began := time.Now()
		_, err := n.Peek(w.Context(), consumerCredentials, w.consumer, 1, nil)
		require.Equal(w, domain.Unavailable, domain.KindOf(err))
		require.Equal(w, 10*time.Second, time.Since(began))
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		require.ErrorIs(w, n.Dequeue(ctx, consumerCredentials, w.consumer, "bundle"), context.Canceled)
		b := w.startNode("b", delivery.Options{})
		w.awaitSharing()
		require.Len(w, w.peekBundle(b, 1).Messages, 1, "the request was not lost, or nothing was")
	})
}

func TestABundle_HasLimitedMessagesAndBytes(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startNode("a", delivery.Options{})
		w.awaitSharing()
		w.status, w.takes = 500, time.Second
		large := &broker.Broadcast{Payload: []byte(strings.Repeat("x", 1<<20-1000))}
		for range 8 {
			_, _, err := n.Broadcast(w.Context(), producerCredentials, w.channel, large)
			require.NoError(w, err)
		}
		w.broadcast(n, 60, 0)
		<-time.After(10 * time.Second)
		bundle := w.peekBundle(n, broker.MaxPeek)
		require.Len(w, bundle.Messages, 4, "four MB")
		w.dequeues(n, bundle)
		w.dequeues(n, w.peekBundle(n, broker.MaxPeek))
		require.LessOrEqual(w, len(w.peekBundle(n, broker.MaxPeek).Messages), broker.MaxPeek)
		for _, limit := range []int{0, -1, broker.MaxPeek + 1} {
			_, err := n.Peek(w.Context(), consumerCredentials, w.consumer, limit, nil)
			require.Equal(w, domain.Invalid, domain.KindOf(err))
		}
	})
}

func TestPayloads_AreReadOnceTheirMemoryIsReserved(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startNode("a", delivery.Options{})
		reserved, isFull := []int64{}, true
		reserve := func(_ context.Context, bytes int64) error {
			if reserved = append(reserved, bytes); isFull {
				return domain.Errorf(domain.Busy, "there is no room")
			}
			return nil
		}
		_, err := n.Peek(w.Context(), consumerCredentials, w.consumer, 8, reserve)
		require.NoError(w, err)
		require.Empty(w, reserved, "nothing waits, and nothing is read")
		w.status = 500
		id, _, err := n.Broadcast(w.Context(), producerCredentials, w.channel, &broker.Broadcast{Payload: make([]byte, 1000)})
		require.NoError(w, err)
		<-time.After(time.Second)
		_, err = n.Peek(w.Context(), consumerCredentials, w.consumer, 8, reserve)
		require.Equal(w, domain.Busy, domain.KindOf(err))
		_, err = n.Message(w.Context(), adminCredentials, w.channel, id, reserve)
		require.Equal(w, domain.Busy, domain.KindOf(err))
		_, err = n.Message(w.Context(), &broker.Credentials{ChannelToken: "wrong"}, w.channel, id, reserve)
		require.ErrorIs(w, err, broker.ErrForbidden, "a stranger reserves nothing")
		require.Equal(w, []int64{1000, 1000}, reserved)
		isFull = false
		bundle, err := n.Peek(w.Context(), consumerCredentials, w.consumer, 8, reserve)
		require.NoError(w, err)
		require.Len(w, bundle.Messages, 1)
	})
}

func TestDequeue_FailsForAnUnknownBundle(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startNode("a", delivery.Options{})
		w.awaitSharing()
		for _, id := range []string{"", "other", strings.Repeat("x", 1000)} {
			err := n.Dequeue(w.Context(), consumerCredentials, w.consumer, id)
			require.Equal(w, domain.NotFound, domain.KindOf(err), id)
		}
		w.status = 500
		w.broadcast(n, 1, 0)
		<-time.After(time.Second)
		bundle := w.peekBundle(n, 1)
		require.Equal(w, domain.NotFound, domain.KindOf(n.Dequeue(w.Context(), consumerCredentials, w.consumer, "other")))
		require.Equal(w, bundle, w.peekBundle(n, 1))
	})
}

func TestFetch_IsForTheConsumerOnly(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		n := w.startNode("a", delivery.Options{})
		for _, c := range []struct {
			creds *broker.Credentials
			want  error
		}{{&broker.Credentials{}, broker.ErrUnauthenticated}, {&broker.Credentials{ConsumerToken: "other"}, broker.ErrForbidden}} {
			_, err := n.Peek(w.Context(), c.creds, w.consumer, 1, nil)
			require.ErrorIs(w, err, c.want)
			require.ErrorIs(w, n.Dequeue(w.Context(), c.creds, w.consumer, "b"), c.want)
		}
	})
}

func TestAJobInABundle_IsInFlight(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.status, w.takes = 500, time.Second
		n := w.startNode("a", delivery.Options{Concurrency: 1})
		w.awaitSharing()
		w.broadcast(n, 2, 0)
		<-time.After(1500 * time.Millisecond) // by now one delivery has failed, and the consumer is being called with a second message
		w.broadcast(n, 1, 0)
		bundle := w.peekBundle(n, 3)
		statusOf := func(number int64) broker.JobStatus {
			m, err := n.Message(w.Context(), adminCredentials, w.channel, domain.EntryID{Number: number}.MessageID(), nil)
			require.NoError(w, err)
			require.Len(w, m.Jobs, 1)
			return m.Jobs[0].Status
		}
		require.Equal(w, []broker.JobStatus{broker.RetryInFlight, broker.InFlight, broker.InFlight}, []broker.JobStatus{statusOf(0), statusOf(1), statusOf(2)})
		fetched := make(map[domain.EntryID]int)
		countMessages(fetched, bundle)
		require.Equal(w, map[domain.EntryID]int{{}: 1, {Number: 2}: 1}, fetched, "the other one is called")
		w.dequeues(n, bundle)
		require.Equal(w, broker.Delivered, statusOf(0))
		require.Equal(w, broker.Delivered, statusOf(2))
		<-time.After(time.Second)
		require.Equal(w, broker.RetryDelivery, statusOf(1))
	})
}

// TestFetch_LosesNothingWhenNodesEnd tests rule P15 with two nodes that end one after the other.
func TestFetch_LosesNothingWhenNodesEnd(t *testing.T) {
	inFetchWorld(t, func(w *fetchWorld) {
		w.takes = 20 * time.Millisecond
		fetched, sent := make(map[domain.EntryID]int), 0
		previous := w.startNode("node-0", delivery.Options{Concurrency: 2})
		w.awaitSharing()
		for i := 1; i <= 4; i++ {
			next := w.startNode(fmt.Sprint("node-", i), delivery.Options{Concurrency: 2})
			for range 10 {
				w.broadcast(previous, 10, i%2)
				sent += 10
				if b, err := next.Peek(w.Context(), consumerCredentials, w.consumer, 4, nil); err == nil && b != nil {
					countMessages(fetched, b)
					w.dequeues(next, b)
				}
			}
			previous.stop()
			w.awaitSharing()
			previous = next
		}
		<-time.After(time.Minute)
		calls := w.countCalls()
		for e := range fetched {
			require.Zero(w, calls[e], "%v came by a call and in a bundle", e)
		}
		require.Len(w, calls, sent-len(fetched))
		s, err := w.ports.Cursors.Standing(w.Context(), w.consumer.Cursor())
		require.NoError(w, err)
		require.Zero(w, s.Outstanding())
		require.EqualValues(w, sent, s.Counters.Delivered)
	})
}
