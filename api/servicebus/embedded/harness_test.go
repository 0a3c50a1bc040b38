package embedded_test

import (
	"context"
	"net"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// openNamespace opens a namespace, and closes it at the end of the test.
func openNamespace(t testing.TB, o embedded.Options) *embedded.Namespace {
	t.Helper()
	n, err := embedded.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// clientDialing returns client options that make azservicebus connect with dial.
func clientDialing(dial func(context.Context) (net.Conn, error)) *azservicebus.ClientOptions {
	return &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return dial(ctx) },
	}
}

// newClient returns a client that uses in-process connections of the namespace.
func newClient(t testing.TB, n *embedded.Namespace) *azservicebus.Client {
	t.Helper()
	c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(""), clientDialing(n.Dial))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func sendBodies(t testing.TB, c *azservicebus.Client, entity string, bodies ...string) {
	t.Helper()
	s, err := c.NewSender(entity, nil)
	require.NoError(t, err)
	for _, body := range bodies {
		require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(body)}, nil))
	}
	require.NoError(t, s.Close(t.Context()))
}
