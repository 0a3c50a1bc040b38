package deadletterqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/deadletterqueue"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain/deadletters"
)

const (
	plain    = "plain"
	sessions = "sessions"
	dedup    = "deduplicated"
	who      = "an operator"
)

// A busSite is a bus with dead letters, and a client that sends and receives messages.
type busSite struct {
	*testing.T
	bus    *embedded.Namespace
	client *azservicebus.Client
}

func newSite(t *testing.T) *busSite {
	t.Helper()
	var e embedded.Entities
	e.Queues = []embedded.QueueSetup{{Name: plain}, {Name: sessions}, {Name: dedup}}
	for i := range e.Queues {
		e.Queues[i].Properties.DeadLetteringOnMessageExpiration = true
		e.Queues[i].Properties.LockDuration = "PT1M"
	}
	e.Queues[1].Properties.RequiresSession = true
	e.Queues[2].Properties.RequiresDuplicateDetection = true
	e.Queues[2].Properties.DuplicateDetectionHistoryTimeWindow = "PT10M"
	s := &busSite{T: t, bus: bustest.Open(t, embedded.Options{Entities: e})}
	s.client = s.newClient(nil)
	return s
}

// newClient returns a client. wire, if not nil, wraps each connection of the client.
func (s *busSite) newClient(wire func(net.Conn) net.Conn) *azservicebus.Client {
	s.Helper()
	c, err := s.open(wire)()
	require.NoError(s, err)
	s.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (s *busSite) open(wire func(net.Conn) net.Conn) func() (*azservicebus.Client, error) {
	return func() (*azservicebus.Client, error) {
		return bustest.NewClient(s.bus.ConnectionString(""), func(ctx context.Context) (net.Conn, error) {
			conn, err := s.bus.Dial(ctx)
			if err != nil || wire == nil {
				return conn, err
			}
			return wire(conn), nil
		})
	}
}

// newBus returns the Bus under test.
func (s *busSite) newBus(fetchesAny bool, change ...func(*deadletterqueue.Options)) *deadletterqueue.Bus {
	s.Helper()
	o := deadletterqueue.Options{Open: s.open(nil), FetchesAny: fetchesAny, Clock: bustest.ClockAt(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	for _, c := range change {
		c(&o)
	}
	b := deadletterqueue.New(o)
	s.Cleanup(func() { require.NoError(s, b.Close(context.Background())) })
	return b
}

func (s *busSite) send(queue string, messages ...*azservicebus.Message) {
	s.Helper()
	sender, err := s.client.NewSender(queue, nil)
	require.NoError(s, err)
	defer func() { require.NoError(s, sender.Close(context.Background())) }()
	for _, m := range messages {
		require.NoError(s, sender.SendMessage(s.Context(), m, nil))
	}
}

// A lockedReceiver receives from a session or from a queue, for which azservicebus has separate
// types.
type lockedReceiver interface {
	ReceiveMessages(ctx context.Context, limit int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	DeadLetterMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.DeadLetterOptions) error
	CompleteMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.CompleteMessageOptions) error
	Close(ctx context.Context) error
}

// receiverOf returns a receiver for a session of a queue, or for the whole queue if session is "".
func (s *busSite) receiverOf(queue, session string) lockedReceiver {
	s.Helper()
	if session == "" {
		return bustest.Must(s.client.NewReceiverForQueue(queue, nil))
	}
	return bustest.Must(s.client.AcceptSessionForQueue(s.Context(), queue, session, nil))
}

// receive removes n messages from a session of a queue, or from the whole queue if session is "".
func (s *busSite) receive(queue, session string, n int) (got []*azservicebus.ReceivedMessage) {
	s.Helper()
	r := s.receiverOf(queue, session)
	defer func() { require.NoError(s, r.Close(context.Background())) }()
	for len(got) < n {
		messages, err := r.ReceiveMessages(s.Context(), 1, nil)
		require.NoError(s, err)
		for _, m := range messages {
			require.NoError(s, r.CompleteMessage(s.Context(), m, nil))
			got = append(got, m)
		}
	}
	return got
}

// deadLetter sends messages and then dead-letters them with a reason.
func (s *busSite) deadLetter(queue, session, reason string, messages ...*azservicebus.Message) {
	s.Helper()
	s.send(queue, messages...)
	r := s.receiverOf(queue, session)
	defer func() { require.NoError(s, r.Close(context.Background())) }()
	for range messages {
		got, err := r.ReceiveMessages(s.Context(), 1, nil)
		require.NoError(s, err)
		require.Len(s, got, 1)
		require.NoError(s, r.DeadLetterMessage(s.Context(), got[0], &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: to.Ptr("about " + reason)}))
	}
}

// addExpired adds n dead letters to a queue by sending messages that expire. The test must use fake
// time (testing/synctest).
func (s *busSite) addExpired(queue string, n int) {
	s.Helper()
	const atOnce = 100
	sender, err := s.client.NewSender(queue, nil)
	require.NoError(s, err)
	defer func() { require.NoError(s, sender.Close(context.Background())) }()
	for sent := 0; sent < n; {
		batch, err := sender.NewMessageBatch(s.Context(), nil)
		require.NoError(s, err)
		for range min(atOnce, n-sent) {
			sent++
			require.NoError(s, batch.AddMessage(&azservicebus.Message{Body: fmt.Append(nil, sent), TimeToLive: to.Ptr(time.Second)}, nil))
		}
		require.NoError(s, sender.SendMessageBatch(s.Context(), batch, nil))
	}
	<-time.After(2 * time.Second) // the wait advances the fake clock
	require.EqualValues(s, n, s.bus.Stats().DeadLetters)
}

// newMessages returns messages with the given bodies.
func newMessages(bodies ...string) (messages []*azservicebus.Message) {
	for _, b := range bodies {
		messages = append(messages, &azservicebus.Message{Body: []byte(b), MessageID: to.Ptr("id-" + b)})
	}
	return messages
}

func bodiesOf(messages []*azservicebus.ReceivedMessage) (bodies []string) {
	for _, m := range messages {
		bodies = append(bodies, string(m.Body))
	}
	return bodies
}

// numbers returns the sequence numbers of all dead letters of a queue.
func (s *busSite) numbers(b *deadletterqueue.Bus, queue string) (numbers []int64) {
	s.Helper()
	found, err := b.Peek(s.Context(), queue, 0, deadletters.MaxPage)
	require.NoError(s, err)
	for i := range found {
		numbers = append(numbers, found[i].Number)
	}
	return numbers
}

// How Microsoft's client settles a message: with a management request if the message was fetched by
// its sequence number or its link is lost, and otherwise with a disposition.
const (
	settleRequest = "com.microsoft:update-disposition"
	disposition   = "\x00\x53\x15"
)

// resentCopy is a string that every resent copy contains.
const resentCopy = "FormerMessageId"

// A cutConn breaks its connection when a message is settled or, if isOfCopy is true, when a copy is
// sent. If isLate is true, the bus receives that frame, but its reply is lost. Otherwise the bus
// does not receive the frame.
type cutConn struct {
	net.Conn
	isOfCopy bool
	isLate   bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	isSettlement := bytes.Contains(p, []byte(settleRequest)) || bytes.Contains(p, []byte(disposition))
	if isCopy := bytes.Contains(p, []byte(resentCopy)); !isCopy && c.isOfCopy || !isSettlement && !c.isOfCopy {
		return c.Conn.Write(p)
	}
	if c.isLate {
		_, _ = c.Conn.Write(p)
	}
	_ = c.Close()
	return 0, net.ErrClosed
}

// inBothWays runs a test on two buses: receivers of the first can fetch any dead letter by its
// number, and receivers of the second cannot.
func inBothWays(t *testing.T, test func(s *busSite, fetchesAny bool)) {
	t.Helper()
	for name, fetchesAny := range map[string]bool{"fetch": true, "receive": false} {
		t.Run(name, bustest.InBubble(func(t *testing.T) { test(newSite(t), fetchesAny) }))
	}
}
