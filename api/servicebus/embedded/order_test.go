package embedded_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// dialDistant returns a dial function whose connections delay all bytes in both directions.
func dialDistant(n *embedded.Namespace, away time.Duration, lines *sync.WaitGroup) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		near, err := n.Dial(ctx)
		if err != nil {
			return nil, err
		}
		client, far := net.Pipe()
		lines.Go(func() { copyDelayed(near, far, away) })
		lines.Go(func() { copyDelayed(far, near, away) })
		return client, nil
	}
}

// copyDelayed copies data from one connection to another, and delays each part.
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
		for range parts { // parts has capacity for all parts, so the sender never blocks
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

// With a credit of one message, the messages of a session stay in order: in bursts, over a slow connection, and when
// another receiver takes over.
func TestSession_KeepsItsOrderOverASlowConnection(t *testing.T) {
	const sessions, each, turn = 3, 40, 10
	n := openNamespace(t, embedded.Options{Entities: sessionQueue("q")})
	var lines sync.WaitGroup
	defer lines.Wait()
	c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(""), clientDialing(dialDistant(n, 2*time.Millisecond, &lines)))
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() { // one message to each session, repeatedly
		s, err := c.NewSender("q", nil)
		assert.NoError(t, err)
		for i := range each {
			for session := range sessions {
				assert.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(strconv.Itoa(i)), SessionID: to.Ptr(strconv.Itoa(session))}, nil))
			}
		}
	})
	got := make([][]string, sessions)
	for session := range sessions {
		all.Go(func() {
			for len(got[session]) < each {
				r, err := c.AcceptSessionForQueue(t.Context(), "q", strconv.Itoa(session), nil)
				if !assert.NoError(t, err) {
					return
				}
				for range turn {
					m, err := r.ReceiveMessages(t.Context(), 1, nil)
					if !assert.NoError(t, err) || !assert.Len(t, m, 1) || !assert.NoError(t, r.CompleteMessage(t.Context(), m[0], nil)) {
						return
					}
					got[session] = append(got[session], string(m[0].Body))
				}
				assert.NoError(t, r.Close(t.Context()))
			}
		})
	}
	all.Wait()
	require.NoError(t, c.Close(t.Context()))
	want := make([]string, each)
	for i := range want {
		want[i] = strconv.Itoa(i)
	}
	for session := range sessions {
		require.Equal(t, want, got[session])
	}
}

// A lock that is not renewed expires at the end of the lock duration, measured with the clock of the namespace.
func TestLock_ExpiresByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entities := queues("q")
		entities.Queues[0].Properties.LockDuration = "PT30S"
		entities.Queues[0].Properties.MaxDeliveryCount = 2
		n, err := embedded.Open(embedded.Options{Entities: entities})
		require.NoError(t, err)
		c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(""), clientDialing(n.Dial))
		require.NoError(t, err)
		sendBodies(t, c, "q", "slow")
		r, err := c.NewReceiverForQueue("q", nil)
		require.NoError(t, err)
		first := receiveOne(t, r)
		began := time.Now()
		require.Equal(t, began.Add(30*time.Second).UTC().Truncate(time.Millisecond), first.LockedUntil.UTC())
		again := receiveOne(t, r) // ReceiveMessages waits until the lock has expired
		require.Equal(t, 30*time.Second, time.Since(began).Round(time.Second))
		require.EqualValues(t, 2, again.DeliveryCount)
		var lost *azservicebus.Error
		require.ErrorAs(t, r.CompleteMessage(t.Context(), first, nil), &lost)
		require.Equal(t, azservicebus.CodeLockLost, lost.Code)
		<-time.After(31 * time.Second)
		dead, err := c.NewReceiverForQueue("q", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
		require.NoError(t, err)
		require.Equal(t, "MaxDeliveryCountExceeded", *receiveOne(t, dead).DeadLetterReason)
		require.NoError(t, c.Close(t.Context()))
		require.NoError(t, n.Close())
	})
}
