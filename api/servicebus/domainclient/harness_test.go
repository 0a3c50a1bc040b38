package domainclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// patience is the time limit of each wait in a test. At the limit, the test fails.
const patience = time.Minute

// entities are the queues of a hub and one domain. The queue for notices has short locks: if a
// connection breaks while a notice is on its way to a receiver, the notice stays locked until its
// lock expires.
const entities = `{"Queues": [
	{"Name": "dataavailable-fifo", "Properties": {"RequiresSession": true}},
	{"Name": "charges", "Properties": {"RequiresSession": true}},
	{"Name": "charges-reply", "Properties": {"RequiresSession": true}},
	{"Name": "charges-dequeue", "Properties": {"LockDuration": "PT5S"}}]}`

// openBus opens a bus that is closed at the end of the test.
func openBus(t testing.TB) *embedded.Namespace {
	t.Helper()
	declared, err := embedded.ReadEntities(strings.NewReader(entities))
	require.NoError(t, err)
	n, err := embedded.Open(embedded.Options{Entities: declared})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// connectTo returns a Connect for a bus in this process.
func connectTo(n *embedded.Namespace) domainclient.Connect {
	return func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(n.ConnectionString(""), &azservicebus.ClientOptions{
			NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return n.Dial(ctx) },
			RetryOptions:     azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond},
		})
	}
}

// newClient returns a client of the domain Charges. It is closed at the end of the test.
func newClient(t testing.TB, o domainclient.Options) *domainclient.Client {
	t.Helper()
	if o.Origin == "" {
		o.Origin = "Charges"
	}
	c, err := domainclient.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

// A busHub simulates the hub's side of the bus, as far as a domain can observe it.
type busHub struct {
	t      testing.TB
	client *azservicebus.Client
}

func newHub(t testing.TB, n *embedded.Namespace) *busHub {
	t.Helper()
	client, err := connectTo(n)()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return &busHub{t, client}
}

// receiveEvents receives count messages of a recipient from the queue for events, and completes them.
func (h *busHub) receiveEvents(recipient string, count int) []*azservicebus.ReceivedMessage {
	h.t.Helper()
	return h.takeSession(contract.DataAvailableFIFO, recipient, count)
}

func (h *busHub) takeSession(queue, session string, count int) []*azservicebus.ReceivedMessage {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	from, err := h.client.AcceptSessionForQueue(ctx, queue, session, nil)
	require.NoError(h.t, err)
	defer func() { require.NoError(h.t, from.Close(ctx)) }()
	var all []*azservicebus.ReceivedMessage
	for len(all) < count {
		some, err := from.ReceiveMessages(ctx, 1, nil)
		require.NoError(h.t, err)
		for _, m := range some {
			require.NoError(h.t, from.CompleteMessage(ctx, m, nil))
		}
		all = append(all, some...)
	}
	return all
}

// send sends one message.
func (h *busHub) send(queue string, m *azservicebus.Message) {
	h.t.Helper()
	sender, err := h.client.NewSender(queue, nil)
	require.NoError(h.t, err)
	require.NoError(h.t, sender.SendMessage(h.t.Context(), m, nil))
	require.NoError(h.t, sender.Close(h.t.Context()))
}

// eventIDs returns the ids of the events in messages, in order.
func eventIDs(t testing.TB, messages []*azservicebus.ReceivedMessage) []string {
	t.Helper()
	var ids []string
	for _, m := range messages {
		if *m.ContentType == contract.Protobuf {
			var e contract.DataAvailableNotificationContract
			require.NoError(t, proto.Unmarshal(m.Body, &e))
			ids = append(ids, e.GetUUID())
			continue
		}
		require.Equal(t, contract.JSON, *m.ContentType)
		var events []struct{ ID string }
		require.NoError(t, json.Unmarshal(m.Body, &events))
		for _, e := range events {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// id returns the id of event number n.
func id(n int) uuid.UUID { return uuid.MustParse(fmt.Sprintf("0b9f4c5e-7a52-4d57-9d0c-%012d", n)) }

// ids returns the ids of events as text.
func ids(events []domainclient.Event) []string {
	texts := make([]string, len(events))
	for i := range events {
		texts[i] = events[i].ID.String()
	}
	return texts
}

// eventsFor returns the events number from up to number to, inclusive.
func eventsFor(recipient string, from, to int) []domainclient.Event {
	var events []domainclient.Event
	for n := from; n <= to; n++ {
		events = append(events, domainclient.Event{ID: id(n), Recipient: recipient, ContentType: "PriceList", SupportsBundling: true, Weight: 1})
	}
	return events
}
