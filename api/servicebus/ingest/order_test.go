package ingest_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// delayConnections returns a function that wraps a connection and delays each byte in both
// directions.
func delayConnections(away time.Duration, lines *sync.WaitGroup) func(net.Conn) net.Conn {
	return func(near net.Conn) net.Conn {
		client, far := net.Pipe()
		lines.Go(func() { copyDelayed(near, far, away) })
		lines.Go(func() { copyDelayed(far, near, away) })
		return client
	}
}

// copyDelayed copies bytes from one connection to another, and delays each part.
func copyDelayed(to, from net.Conn, away time.Duration) {
	type part struct {
		bytes []byte
		due   time.Time
	}
	parts := make(chan part, 1000)
	var writing sync.WaitGroup
	writing.Go(func() {
		for p := range parts {
			<-time.After(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				break
			}
		}
		_ = to.Close()
		for range parts { // reads the remaining parts, so that the writer is not blocked
		}
	})
	for {
		b := make([]byte, 4096)
		n, err := from.Read(b)
		if n > 0 {
			parts <- part{b[:n], time.Now().Add(away)}
		}
		if err != nil {
			break
		}
	}
	close(parts)
	writing.Wait()
	_, _ = io.Copy(io.Discard, from)
	_ = from.Close()
}

// sendBursts sends events to an actor, three at a time, with pauses between the bursts.
func sendBursts(s *ingestSite, actor domain.ActorID, count int) []domain.Event {
	random := rand.New(rand.NewPCG(1, 2))
	out := s.sender(fifo)
	events := rt.Events(count, actor)
	for three := range slices.Chunk(events, 3) {
		for _, e := range three {
			out.sendEvents(e)
		}
		<-time.After(40*time.Millisecond + time.Duration(random.IntN(40))*time.Millisecond)
	}
	return events
}

const burstEvents = 300

// A receive call for several messages returns the messages of a session in the wrong order. If this
// test fails, the client has been fixed, and a loop may receive several messages in one call.
func TestClient_ReordersASessionInOneCallForSeveralMessages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var lines sync.WaitGroup
		defer lines.Wait()
		s := newSite(t)
		s.wire = delayConnections(5*time.Millisecond, &lines)
		client, err := s.client()
		require.NoError(t, err)
		defer client.Close(context.Background())
		actor := rt.NewActor()
		var sending sync.WaitGroup
		defer sending.Wait()
		sending.Go(func() { sendBursts(s, actor, burstEvents) })
		r, err := client.AcceptSessionForQueue(t.Context(), fifo, actor.String(), nil)
		require.NoError(t, err)
		inversions, highest := 0, int64(0)
		for received := 0; received < burstEvents; {
			got, err := r.ReceiveMessages(t.Context(), 10, nil)
			require.NoError(t, err)
			for _, m := range got {
				require.EqualValues(t, 1, m.DeliveryCount, "and nothing tells of it")
				if *m.SequenceNumber < highest {
					inversions++
				}
				highest = max(highest, *m.SequenceNumber)
				require.NoError(t, r.CompleteMessage(t.Context(), m, nil))
				received++
			}
		}
		require.Positive(t, inversions)
		t.Logf("%d of %d messages were out of order", inversions, burstEvents)
	})
}

func TestASessionKeepsItsOrderOverASlowConnection(t *testing.T) {
	var lines sync.WaitGroup
	defer lines.Wait()
	s := newSite(t)
	s.wire = delayConnections(5*time.Millisecond, &lines)
	stop := s.startIngestion()
	actor := rt.NewActor()
	events := sendBursts(s, actor, burstEvents/5)
	s.waitUntilStored(len(events))
	stop()
	s.has(actor, events...)
	require.Zero(t, s.metric("inversions_total"))
}

// In a queue without sessions, a message can be overtaken by later messages to the same recipient.
// The event of the overtaken message is stored, and reported as late.
func TestOrderMonitor_ReportsALateEvent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, withLocks("PT30S", 10))
		actor := rt.NewActor()
		events := rt.Events(3, actor)
		out := s.sender(plainRecipient)
		out.sendEvents(events[0])
		slow, err := s.newClient().NewReceiverForQueue(plainRecipient, nil)
		require.NoError(t, err)
		_, err = slow.ReceiveMessages(t.Context(), 1, nil)
		require.NoError(t, err)
		out.sendEvents(events[1])
		out.sendEvents(events[2])
		stop := s.startIngestion()
		s.waitUntilStored(3) // after the lock of the slow receiver has expired
		stop()
		s.has(actor, events[1], events[2], events[0])
		require.EqualValues(t, 1, s.metric("inversions_total"))
		require.True(t, s.logs.has(actor.String()))
	})
}

func TestOrderMonitor_DoesNotReportARedelivery(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		actor := rt.NewActor()
		out := s.sender(fifo)
		events := rt.Events(10, actor)
		for _, e := range events {
			out.sendEvents(e)
		}
		dropping := func(context.Context, []domain.Event) error {
			s.hub.after.Store(nil)
			s.bus.Load().DropConnections() // the message is stored but not completed
			synctest.Wait()
			return nil
		}
		s.hub.after.Store(&dropping)
		stop := s.startIngestion()
		s.waitUntilStored(len(events))
		eventually(t, "redeliveries", func() bool { return s.metric("events_duplicates_total") > 0 })
		stop()
		s.has(actor, events...)
		require.Empty(t, s.deliveryCounts(actor.String()))
		require.Zero(t, s.metric("inversions_total"))
	})
}
