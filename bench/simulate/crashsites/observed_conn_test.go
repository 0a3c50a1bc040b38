//go:build unix

package crashsites

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	servicebus "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// observerFunc is a function that implements stepObserver.
type observerFunc func(step steps.Name, when When)

func (w observerFunc) noteBefore(step steps.Name) { w(step, Before) }
func (w observerFunc) noteAfter(step steps.Name)  { w(step, After) }

// A client of the bus receives, settles and sends messages. The connection must report these steps by name and in
// order, and ignore all other frames.
func TestObservedConn_ReportsTheStepsOfAClient(t *testing.T) {
	var setup servicebus.Entities
	for _, name := range []string{"dataavailable", "charges", "charges-reply", "charges-dequeue"} {
		setup.Queues = append(setup.Queues, servicebus.QueueSetup{Name: name})
	}
	bus, err := servicebus.Open(servicebus.Options{Entities: setup})
	require.NoError(t, err)
	defer func() { require.NoError(t, bus.Close()) }()
	client := func(wrap func(net.Conn) net.Conn) *azservicebus.Client {
		c, err := azservicebus.NewClientFromConnectionString(bus.ConnectionString(""), &azservicebus.ClientOptions{
			NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				conn, err := bus.Dial(ctx)
				return wrap(conn), err
			},
		})
		require.NoError(t, err)
		return c
	}
	send := func(c *azservicebus.Client, queue string) {
		s, err := c.NewSender(queue, nil)
		require.NoError(t, err)
		require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: make([]byte, 200_000)}, nil)) // a message that is larger than a frame
		require.NoError(t, s.Close(t.Context()))
	}
	other := client(func(conn net.Conn) net.Conn { return conn })
	send(other, "dataavailable")
	send(other, "charges-reply")
	require.NoError(t, other.Close(t.Context()))

	var mu sync.Mutex
	var seen []string
	hub := client(func(conn net.Conn) net.Conn {
		return newObservedConn(conn, observerFunc(func(step steps.Name, when When) {
			mu.Lock()
			defer mu.Unlock()
			if step != steps.Other && step != "" {
				seen = append(seen, string(step)+" "+string(when))
			}
		}))
	})
	take := func(queue string) {
		r, err := hub.NewReceiverForQueue(queue, nil)
		require.NoError(t, err)
		got, err := r.ReceiveMessages(t.Context(), 1, nil)
		require.NoError(t, err)
		require.NoError(t, r.CompleteMessage(t.Context(), got[0], nil))
		require.NoError(t, r.Close(t.Context()))
	}
	take("dataavailable")
	send(hub, "charges")
	take("charges-reply")
	send(hub, "charges-dequeue")
	require.NoError(t, hub.Close(t.Context()))
	mu.Lock()
	defer mu.Unlock()
	// A client may settle a message before it reads from the connection again, so the order of these steps may vary.
	var begun []steps.Name
	for i, step := range seen {
		name, isBefore := strings.CutSuffix(step, " before")
		if !isBefore {
			continue
		}
		begun = append(begun, steps.Name(name))
		require.Contains(t, seen[i:], name+" after")
	}
	require.Equal(t, []steps.Name{receive, settle, ask, hear, tell}, begun)
	require.Len(t, seen, 2*len(begun))
}
