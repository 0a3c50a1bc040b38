package embedded_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// withoutRetries returns client options without retries, so that a test sees the first error.
func withoutRetries(n *embedded.Namespace) *azservicebus.ClientOptions {
	o := clientDialing(n.Dial)
	o.RetryOptions.MaxRetries = -1
	return o
}

func connectAs(t *testing.T, n *embedded.Namespace, key embedded.Key) *azservicebus.Client {
	t.Helper()
	text := "Endpoint=sb://embedded.localhost;SharedAccessKeyName=" + key.Name + ";SharedAccessKey=" + key.Secret + ";UseDevelopmentEmulator=true"
	c, err := azservicebus.NewClientFromConnectionString(text, withoutRetries(n))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func trySend(t *testing.T, c *azservicebus.Client, entity string) error {
	t.Helper()
	s, err := c.NewSender(entity, nil)
	require.NoError(t, err)
	return s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("x")}, nil)
}

func tryPeek(t *testing.T, c *azservicebus.Client, entity string) error {
	t.Helper()
	r, err := c.NewReceiverForQueue(entity, nil)
	require.NoError(t, err)
	_, err = r.PeekMessages(t.Context(), 1, nil)
	return err
}

func requireCode(t *testing.T, want azservicebus.Code, err error) {
	t.Helper()
	var said *azservicebus.Error
	require.ErrorAs(t, err, &said)
	require.Equal(t, want, said.Code, "%v", err)
}

func TestKey_GrantsItsRights(t *testing.T) {
	sender := embedded.Key{Name: "sender", Secret: "secret of the sender", Rights: embedded.Send}
	listener := embedded.Key{Name: "listener", Secret: "secret of the listener", Rights: embedded.Listen}
	n := openNamespace(t, embedded.Options{Entities: queues("q"), Keys: []embedded.Key{{Name: "all", Secret: "s", Rights: embedded.All}, sender, listener}})
	require.NoError(t, trySend(t, connectAs(t, n, sender), "q"))
	requireCode(t, azservicebus.CodeUnauthorizedAccess, tryPeek(t, connectAs(t, n, sender), "q"))
	require.NoError(t, tryPeek(t, connectAs(t, n, listener), "q"))
	requireCode(t, azservicebus.CodeUnauthorizedAccess, trySend(t, connectAs(t, n, listener), "q"))
	wrong := embedded.Key{Name: "sender", Secret: "not the secret"}
	requireCode(t, azservicebus.CodeUnauthorizedAccess, trySend(t, connectAs(t, n, wrong), "q"))
	requireCode(t, azservicebus.CodeUnauthorizedAccess, trySend(t, connectAs(t, n, embedded.Key{Name: "nobody", Secret: "s"}), "q"))
}

func TestToken_IsValidForItsTimeAndPath(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q", "other")})
	key := embedded.Key{Name: embedded.WellKnownKeyName, Secret: embedded.WellKnownKey}
	with := func(resource string, expires time.Time) *azservicebus.Client {
		c, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://embedded.localhost;SharedAccessSignature="+key.Sign(resource, expires)+";UseDevelopmentEmulator=true", withoutRetries(n))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	soon := time.Now().Add(time.Hour)
	require.NoError(t, trySend(t, with("amqp://embedded.localhost/q", soon), "q"))
	require.NoError(t, trySend(t, with("embedded.localhost", soon), "q"), "a token for the namespace is good for all in it")
	requireCode(t, azservicebus.CodeUnauthorizedAccess, trySend(t, with("amqp://embedded.localhost/q", soon), "other"))
	err := trySend(t, with("amqp://embedded.localhost/q", time.Now().Add(-time.Second)), "q")
	requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
	require.ErrorContains(t, err, "ExpiredToken")
	require.NoError(t, trySend(t, newClient(t, openNamespace(t, embedded.Options{Anonymous: true, CreateOnUse: true})), "q"), "where nobody has to show a token")
}

// A client that opens only the dead-letter queue presents only a token for the dead-letter queue, and can receive from
// it.
func TestDeadLetters_AreReadableWithTheirOwnToken(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q")})
	c := newClient(t, n)
	sendBodies(t, c, "q", "poison")
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	require.NoError(t, r.DeadLetterMessage(t.Context(), receiveOne(t, r), nil))
	dead, err := newClient(t, n).NewReceiverForQueue("q", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	require.NoError(t, err)
	peeked, err := dead.PeekMessages(t.Context(), 1, nil)
	require.NoError(t, err)
	require.Len(t, peeked, 1)
	require.NoError(t, dead.CompleteMessage(t.Context(), receiveOne(t, dead), nil))
}

func TestMissingEntity_IsNotFound(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q")})
	c := connectAs(t, n, embedded.Key{Name: embedded.WellKnownKeyName, Secret: embedded.WellKnownKey})
	requireCode(t, azservicebus.CodeNotFound, trySend(t, c, "nowhere"))
	requireCode(t, azservicebus.CodeNotFound, tryPeek(t, c, "nowhere"))
	require.NoError(t, trySend(t, c, "q"), "the client goes on")
}

func TestSend_RefusesALargeMessageAndContinues(t *testing.T) {
	entities := queues("q")
	entities.Queues[0].Properties.MaxMessageSizeInKilobytes = 4
	c := newClient(t, openNamespace(t, embedded.Options{Entities: entities}))
	s, err := c.NewSender("q", nil)
	require.NoError(t, err)
	err = s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(strings.Repeat("x", 5000))}, nil)
	require.ErrorIs(t, err, azservicebus.ErrMessageTooLarge)
	require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("small")}, nil))
}

func TestFullQueue_AcceptsMessagesAfterAReceive(t *testing.T) {
	entities := queues("q", "other")
	entities.Queues[0].Properties.MaxSizeInMegabytes = 1
	n := openNamespace(t, embedded.Options{Entities: entities})
	key := embedded.Key{Name: embedded.WellKnownKeyName, Secret: embedded.WellKnownKey}
	c := connectAs(t, n, key)
	s, err := c.NewSender("q", nil)
	require.NoError(t, err)
	large := &azservicebus.Message{Body: make([]byte, 200_000)}
	var full error
	for range 10 {
		if full = s.SendMessage(t.Context(), large, nil); full != nil {
			break
		}
	}
	require.ErrorContains(t, full, "amqp:resource-limit-exceeded")
	require.NoError(t, trySend(t, connectAs(t, n, key), "other"), "other queues have room")

	c = connectAs(t, n, key)
	r, err := c.NewReceiverForQueue("q", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	require.NoError(t, err)
	receiveOne(t, r)
	s, err = c.NewSender("q", nil)
	require.NoError(t, err)
	require.NoError(t, s.SendMessage(t.Context(), large, nil), "there is room again")
}

func TestDelete_EndsTheReceivers(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q")})
	c := connectAs(t, n, embedded.Key{Name: embedded.WellKnownKeyName, Secret: embedded.WellKnownKey})
	sendBodies(t, c, "q", "a")
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	m := receiveOne(t, r)
	admin := newAdminClient(t, n)
	_, err = admin.DeleteQueue(t.Context(), "q", nil)
	require.NoError(t, err)
	require.Error(t, r.CompleteMessage(t.Context(), m, nil))
	requireCode(t, azservicebus.CodeNotFound, trySend(t, c, "q"))
}

func TestClose_EndsTheConnectionsOfClients(t *testing.T) {
	n, err := embedded.Open(embedded.Options{Entities: queues("q")})
	require.NoError(t, err)
	c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(""), withoutRetries(n))
	require.NoError(t, err)
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	failed := make(chan error, 1)
	waiting, err := n.Dial(t.Context()) // waiting is a connection that never sends anything
	require.NoError(t, err)
	go func() {
		for {
			if _, err := r.ReceiveMessages(context.Background(), 1, nil); err != nil {
				failed <- err
				return
			}
		}
	}()
	require.NoError(t, n.Close())
	require.Error(t, <-failed)
	require.NoError(t, waiting.Close())
	_ = c.Close(t.Context())
}

func TestClient_RecoversFromADroppedConnection(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q")})
	c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(""), &azservicebus.ClientOptions{
		NewWebSocketConn: clientDialing(n.Dial).NewWebSocketConn, RetryOptions: azservicebus.RetryOptions{RetryDelay: time.Millisecond},
	})
	require.NoError(t, err)
	defer c.Close(context.Background())
	s, err := c.NewSender("q", nil)
	require.NoError(t, err)
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte{byte(i)}}, nil))
		n.DropConnections()
		var got []*azservicebus.ReceivedMessage
		for len(got) == 0 { // the first calls may return no messages, because the link was detached
			got, err = r.ReceiveMessages(t.Context(), 1, nil)
			require.NoError(t, err)
		}
		require.Equal(t, []byte{byte(i)}, got[0].Body)
		require.NoError(t, r.CompleteMessage(t.Context(), got[0], nil))
		n.DropConnections()
	}
}

// The server uses bounded memory for a client that requests large messages and does not read them.
func TestClient_ThatNeverReadsUsesBoundedMemory(t *testing.T) {
	entities := queues("q")
	entities.Queues[0].Properties.MaxMessageSizeInKilobytes = 1024
	n := openNamespace(t, embedded.Options{Dir: t.TempDir(), Entities: entities})
	c := newClient(t, n)
	s, err := c.NewSender("q", nil)
	require.NoError(t, err)
	const size, count = 900_000, 60
	for range count {
		require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: make([]byte, size)}, nil))
	}
	require.NoError(t, s.Close(t.Context()))
	nc, err := n.Dial(t.Context())
	require.NoError(t, err)
	stuck := newStuckConn(nc)
	conn, err := amqp.NewConn(t.Context(), stuck, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(embedded.WellKnownKeyName, embedded.WellKnownKey), HostName: "h"})
	require.NoError(t, err)
	session, err := conn.NewSession(t.Context(), &amqp.SessionOptions{})
	require.NoError(t, err)
	before := heapAlloc()
	stuck.stickAfter(2 * size)
	defer stuck.unstick() // otherwise Close would wait a minute for the connection
	receiver, err := session.NewReceiver(t.Context(), "q", &amqp.ReceiverOptions{Credit: count})
	require.NoError(t, err)
	_, err = receiver.Receive(t.Context(), nil)
	require.NoError(t, err)
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	_, err = r.PeekMessages(t.Context(), 50, nil) // another client can still receive messages
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the stuck client may still buffer data that it received
		return heapAlloc()-before < count*size/3
	}, time.Minute, 10*time.Millisecond)
	stuck.unstick()
	require.NoError(t, nc.Close())
	_ = conn.Close()
}

// A stuckConn reads a limited number of bytes after stickAfter, then blocks until unstick is called.
type stuckConn struct {
	net.Conn
	stuck   atomic.Bool
	left    atomic.Int64 // left is the number of bytes that can be read after stickAfter
	until   chan struct{}
	unstick func()
}

func newStuckConn(nc net.Conn) *stuckConn {
	c := &stuckConn{Conn: nc, until: make(chan struct{})}
	c.unstick = sync.OnceFunc(func() { close(c.until) })
	return c
}

func (c *stuckConn) stickAfter(bytes int64) {
	c.left.Store(bytes)
	c.stuck.Store(true)
}

func (c *stuckConn) Read(b []byte) (int, error) {
	if !c.stuck.Load() {
		return c.Conn.Read(b)
	}
	if left := c.left.Load(); left > 0 {
		b = b[:min(int64(len(b)), left)]
	} else {
		<-c.until
	}
	n, err := c.Conn.Read(b)
	c.left.Add(-int64(n))
	return n, err
}
