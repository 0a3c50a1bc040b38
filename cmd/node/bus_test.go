package node

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// An idle client of the bus renews its tokens in the background. If its retry
// options permit only one attempt, the library does not pause between attempts
// while the bus is unavailable. The options of the hub must prevent this.
func TestAClientDoesNotSpinWhileTheBusIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var setup embedded.Entities
		setup.Queues = []embedded.QueueSetup{{Name: "queue"}}
		bus, err := embedded.Open(embedded.Options{Entities: setup})
		require.NoError(t, err)
		var away atomic.Bool
		var dials atomic.Int64
		const tooMany = 20_000
		spins := make(chan struct{})
		o := clientOptions()
		o.NewWebSocketConn = func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			if !away.Load() {
				return bus.Dial(ctx)
			}
			if dials.Add(1) == tooMany {
				close(spins)
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, errors.New("connection refused")
		}
		client, err := azservicebus.NewClientFromConnectionString(bus.ConnectionString(""), o)
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close(context.WithoutCancel(t.Context()))) }()
		sender, err := client.NewSender("queue", nil)
		require.NoError(t, err)
		require.NoError(t, sender.SendMessage(t.Context(), &azservicebus.Message{}, nil))

		away.Store(true)
		require.NoError(t, bus.Close())
		select {
		case <-spins:
			require.Fail(t, "it spins")
		case <-time.After(10 * time.Minute): // long enough, because the client renews its token after five minutes
		}
		require.Positive(t, dials.Load(), "it has tried")
	})
}
