package ingest_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"net"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/domain"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// asDecimal is a number that a tamperingConn converts to a decimal. Clients of the embedded bus
// cannot send a decimal, but clients of another broker can.
const asDecimal = int64(0x7EC17A1B0A7DECAF)

// A tamperingConn replaces the number asDecimal with a decimal in all bytes that are read from it.
type tamperingConn struct {
	net.Conn
	rest []byte
}

func (c *tamperingConn) Read(b []byte) (int, error) {
	const long, decimal64, frames = 0x81, 0x84, 1 << 20
	number := func(code byte) []byte { return binary.BigEndian.AppendUint64([]byte{code}, uint64(asDecimal)) }
	if len(c.rest) == 0 {
		whole := make([]byte, frames) // large enough for everything that the bus writes in one call
		n, err := c.Conn.Read(whole)
		if err != nil {
			return 0, err
		}
		c.rest = bytes.ReplaceAll(whole[:n], number(long), number(decimal64))
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// sendUndecodable sends an announcement that Microsoft's client cannot decode, so that the client
// ends its link.
func (s *ingestSite) sendUndecodable(queue string, e domain.Event) {
	s.Helper()
	s.wire = func(near net.Conn) net.Conn { return &tamperingConn{Conn: near} }
	raw, err := s.newClient().NewSender(queue, nil)
	require.NoError(s, err)
	out := &queueSender{s.T, raw, queue == fifo}
	m := out.message(e)
	m.ApplicationProperties = map[string]any{"Price": asDecimal}
	out.sendMessage(m)
}

// newTamperedReceiver returns a receiver that reads through a tamperingConn, as the hub does.
func (s *ingestSite) newTamperedReceiver(queue string) *azservicebus.Receiver {
	s.Helper()
	c, err := s.client()
	require.NoError(s, err)
	s.Cleanup(func() { _ = c.Close(context.Background()) })
	r, err := c.NewReceiverForQueue(queue, nil)
	require.NoError(s, err)
	return r
}

// Microsoft's client ends its link when it receives a decimal. If this test fails, the client has
// been fixed, and no session needs to be parked because of a decimal.
func TestClient_EndsItsLinkOnADecimal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.sendUndecodable(plainRecipient, rt.Event(rt.NewActor()))
		r := s.newTamperedReceiver(plainRecipient)
		got, err := r.ReceiveMessages(t.Context(), 1, nil)
		require.NoError(t, err)
		require.Empty(t, got, "so it says that the link is lost")
		_, err = r.PeekMessages(t.Context(), 1, nil)
		require.Error(t, err)
	})
}

// A queue without sessions contains an undecodable message. The other messages are stored. The
// undecodable message is delivered again each time its lock expires, until it becomes a dead
// letter.
func TestAMessageThatCannotBeDecodedDoesNotDelayOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, withLocks("PT20S", 3))
		actor := rt.NewActor()
		events := rt.Events(5, actor)
		s.sendUndecodable(plainRecipient, rt.Event(actor))
		stop := s.startIngestion()
		began := time.Now()
		s.sendByNewClient(plainRecipient, events)
		s.waitUntilStored(len(events))
		require.Less(t, time.Since(began), 2*time.Second)
		<-time.After(2 * time.Minute)
		stop()
		require.Empty(t, s.deliveryCounts(""), "it is a dead letter")
		s.has(actor, events...)
	})
}

func TestPeek_BehindTheLastMessageReturnsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.sendUndecodable(plainRecipient, rt.Event(rt.NewActor()))
		r := s.newTamperedReceiver(plainRecipient)
		last := int64(math.MaxInt64)
		got, err := r.PeekMessages(t.Context(), 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &last})
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

// A session contains an undecodable message. Its other messages are stored only after an operator
// has removed that message; until then, the pauses between attempts grow.
func TestASessionWithAMessageThatCannotBeDecodedWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, withLocks("PT20S", 3))
		stricken, other := rt.NewActor(), rt.NewActor()
		s.sendUndecodable(fifo, rt.Event(stricken))
		events, others := rt.Events(5, stricken), rt.Events(5, other)
		s.sendByNewClient(fifo, events)
		stop := s.startIngestion()
		<-time.After(time.Minute)
		require.True(t, s.logs.has("a session cannot be received from"))
		began := s.metric("locks_lost_total")
		<-time.After(10 * time.Minute)
		require.LessOrEqual(t, s.metric("locks_lost_total")-began, 10*60/5.0)
		require.Positive(t, s.metric("locks_lost_total")-began, "it is still tried")
		sent := time.Now()
		s.sendByNewClient(fifo, others)
		s.waitUntilStored(len(others))
		require.Less(t, time.Since(sent), 2*time.Second)

		stop()
		<-time.After(20 * time.Second) // the lock of the session outlives the lost link; wait until it expires
		s.removeFirstMessage(stricken)
		stop = s.startIngestion(func(o *ingest.Options) { o.Registerer = nil })
		s.waitUntilStored(len(others) + len(events))
		stop()
		require.Empty(t, s.deliveryCounts(stricken.String()))
		s.has(stricken, events...)
		s.has(other, others...)
		require.Zero(t, s.metric("inversions_total"))
	})
}

// removeFirstMessage removes the first message of a session from the queue.
func (s *ingestSite) removeFirstMessage(session domain.ActorID) {
	s.Helper()
	r, err := s.newClient().AcceptSessionForQueue(s.Context(), fifo, session.String(), &azservicebus.SessionReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	require.NoError(s, err)
	_, err = r.ReceiveMessages(s.Context(), 1, nil)
	require.NoError(s, err)
	_ = r.Close(s.Context()) // the link is lost already
}
