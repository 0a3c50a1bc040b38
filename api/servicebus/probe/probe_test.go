package probe_test

import (
	"context"
	"net"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newBus returns a client of a namespace. The key of the client has the given rights.
func newBus(t *testing.T, rights embedded.Key) *azservicebus.Client {
	t.Helper()
	var entities embedded.Entities
	for name, sessions := range map[string]bool{"ordered": true, "plain": false} {
		setup := embedded.QueueSetup{Name: name}
		setup.Properties.RequiresSession = sessions
		entities.Queues = append(entities.Queues, setup)
	}
	rights.Name, rights.Secret = "hub", "c2VjcmV0"
	bus, err := embedded.Open(embedded.Options{Entities: entities, Keys: []embedded.Key{rights}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bus.Close()) })
	client, err := azservicebus.NewClientFromConnectionString(bus.ConnectionString(""), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return bus.Dial(ctx) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	return client
}

func outcomes(t *testing.T, client *azservicebus.Client, links ...probe.Link) (all []probe.Outcome) {
	t.Helper()
	for _, r := range probe.Run(t.Context(), client, "messagehub.doctor", links) {
		require.Equal(t, r.Outcome == probe.Granted, r.Err == nil)
		all = append(all, r.Outcome)
	}
	return all
}

func TestRun_DistinguishesRightsQueuesAndSessions(t *testing.T) {
	client := newBus(t, embedded.Key{Rights: embedded.All})
	require.Equal(t, []probe.Outcome{probe.Granted, probe.Granted, probe.Granted, probe.Missing, probe.Missing, probe.OtherSessions, probe.OtherSessions},
		outcomes(t, client,
			probe.Link{Queue: "ordered", Sessions: true}, probe.Link{Queue: "plain"}, probe.Link{Queue: "plain", Sends: true},
			probe.Link{Queue: "absent"}, probe.Link{Queue: "absent", Sends: true},
			probe.Link{Queue: "plain", Sessions: true}, probe.Link{Queue: "ordered"}))
}

func TestRun_FindsEachRightThatIsMissing(t *testing.T) {
	all := []probe.Link{{Queue: "ordered", Sessions: true}, {Queue: "plain"}, {Queue: "plain", Sends: true}}
	require.Equal(t, []probe.Outcome{probe.Granted, probe.Granted, probe.Denied}, outcomes(t, newBus(t, embedded.Key{Rights: embedded.Listen}), all...))
	require.Equal(t, []probe.Outcome{probe.Denied, probe.Denied, probe.Granted}, outcomes(t, newBus(t, embedded.Key{Rights: embedded.Send}), all...))
}

func TestRun_LeavesMessagesAlone(t *testing.T) {
	client := newBus(t, embedded.Key{Rights: embedded.All})
	sender, err := client.NewSender("plain", nil)
	require.NoError(t, err)
	require.NoError(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("event")}, nil))
	for range 3 {
		require.Equal(t, []probe.Outcome{probe.Granted}, outcomes(t, client, probe.Link{Queue: "plain"}))
	}
	receiver, err := client.NewReceiverForQueue("plain", nil)
	require.NoError(t, err)
	got, err := receiver.ReceiveMessages(t.Context(), 1, nil)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.EqualValues(t, 1, got[0].DeliveryCount)
}
