package domainclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

const alice, bob = "5790001330552", "6f1c2d3e-4b5a-4678-8a9b-0c1d2e3f4a5b"

func TestSend_UsesTheOriginalContract(t *testing.T) {
	bus := openBus(t)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	domain := newClient(t, domainclient.Options{
		Connect: connectTo(bus), Origin: "Aggregations", Now: func() time.Time { return noon }, Random: strings.NewReader(strings.Repeat("r", 16)),
	})
	e := domainclient.Event{ID: id(1), Recipient: alice, ContentType: "NotifyWholesaleServices", SupportsBundling: true, Weight: 7}
	taken, err := domain.Send(t.Context(), []domainclient.Event{e})
	require.NoError(t, err)
	require.Equal(t, 1, taken)

	m := newHub(t, bus).receiveEvents(alice, 1)[0]
	var got contract.DataAvailableNotificationContract
	require.NoError(t, proto.Unmarshal(m.Body, &got))
	want := &contract.DataAvailableNotificationContract{
		UUID: id(1).String(), Recipient: alice, Origin: "Wholesale", MessageType: e.ContentType, DocumentType: e.ContentType, SupportsBundling: true, RelativeWeight: 7,
	}
	require.True(t, proto.Equal(want, &got), "%v", &got)
	require.Equal(t, alice, *m.SessionID)
	require.Equal(t, map[string]any{
		"OperationTimestamp": "2026-03-01T12:00:00Z", "OperationCorrelationId": m.MessageID, "MessageVersion": int32(1),
		"MessageType": "DataAvailable", "EventIdentification": "72727272-7272-4272-b272-727272727272",
	}, m.ApplicationProperties)
}

func TestSend_KeepsTheOrderOfEachRecipient(t *testing.T) {
	for _, tc := range []struct {
		name        string
		form        domainclient.Form
		each, inOne int
	}{
		{"in protobuf", domainclient.Protobuf, 1, 250},
		{"in JSON, one a message", domainclient.JSON, 1, 250},
		{"in JSON, many a message", domainclient.JSON, 100, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bus := openBus(t)
			domain := newClient(t, domainclient.Options{Connect: connectTo(bus), Form: tc.form, EventsPerMessage: tc.each})
			forAlice, forBob := eventsFor(alice, 1, 250), eventsFor(bob, 1001, 1250)
			var mixed []domainclient.Event
			for i := range forAlice {
				mixed = append(mixed, forAlice[i], forBob[i])
			}
			taken, err := domain.Send(t.Context(), mixed)
			require.NoError(t, err)
			require.Equal(t, 500, taken)
			hub := newHub(t, bus)
			require.Equal(t, ids(forAlice), eventIDs(t, hub.receiveEvents(alice, tc.inOne)))
			require.Equal(t, ids(forBob), eventIDs(t, hub.receiveEvents(bob, tc.inOne)))
		})
	}
}

func TestSend_LeavesThePayloadUnchanged(t *testing.T) {
	bus := openBus(t)
	domain := newClient(t, domainclient.Options{Connect: connectTo(bus), Form: domainclient.JSON})
	e := eventsFor(alice, 1, 1)
	e[0].DocumentType, e[0].Payload = "D18", json.RawMessage(`{"a":"<&>","n":12345678901234567890.10}`)
	_, err := domain.Send(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, `[{"id":"`+id(1).String()+`","recipient":"5790001330552","origin":"Charges","contentType":"PriceList","documentType":"D18",`+
		`"supportsBundling":true,"weight":1,"payload":{"a":"<&>","n":12345678901234567890.10}}]`, string(newHub(t, bus).receiveEvents(alice, 1)[0].Body))
}

func TestSend_LimitsTheSizeOfAMessage(t *testing.T) {
	bus := openBus(t)
	domain := newClient(t, domainclient.Options{Connect: connectTo(bus), Form: domainclient.JSON, EventsPerMessage: 1000})
	events := eventsFor(alice, 1, 7)
	for i := range events {
		events[i].Payload = json.RawMessage(`"` + strings.Repeat("x", 90<<10) + `"`)
	}
	_, err := domain.Send(t.Context(), events)
	require.NoError(t, err)
	messages := newHub(t, bus).receiveEvents(alice, 4)
	require.Equal(t, ids(events), eventIDs(t, messages))
	for _, m := range messages {
		require.Less(t, len(m.Body), 256<<10)
	}
}

func TestSend_UsesAnotherMessageIDOnlyForAChangedEvent(t *testing.T) {
	bus := openBus(t)
	domain := newClient(t, domainclient.Options{Connect: connectTo(bus)})
	send := func(recipient string, weight int64) string {
		e := eventsFor(recipient, 1, 1)
		e[0].Weight = weight
		_, err := domain.Send(t.Context(), e)
		require.NoError(t, err)
		return newHub(t, bus).receiveEvents(recipient, 1)[0].MessageID
	}
	first := send(alice, 1)
	require.Equal(t, first, send(alice, 1))
	require.NotEqual(t, first, send(alice, 2))
	require.NotEqual(t, first, send(bob, 1))
}

func TestSend_RejectsInvalidEventsBeforeItSendsAny(t *testing.T) {
	bus := openBus(t)
	good := eventsFor(alice, 1, 1)[0]
	for _, tc := range []struct {
		want string
		form domainclient.Form
		edit func(e *domainclient.Event)
	}{
		{"no ID", domainclient.JSON, func(e *domainclient.Event) { e.ID = uuid.Nil }},
		{"no Recipient", domainclient.JSON, func(e *domainclient.Event) { e.Recipient = "" }},
		{"no ContentType", domainclient.JSON, func(e *domainclient.Event) { e.ContentType = "" }},
		{"weight: want at least 1 (KB), got 0", domainclient.JSON, func(e *domainclient.Event) { e.Weight = 0 }},
		{"weight: protobuf carries at most 2147483647, got 2147483648", domainclient.Protobuf, func(e *domainclient.Event) { e.Weight = 1 << 31 }},
		{"protobuf carries no Payload", domainclient.Protobuf, func(e *domainclient.Event) { e.Payload = json.RawMessage(`1`) }},
		{"json: error calling MarshalJSON", domainclient.JSON, func(e *domainclient.Event) { e.Payload = json.RawMessage(`{`) }},
	} {
		domain := newClient(t, domainclient.Options{Connect: connectTo(bus), Form: tc.form})
		bad := good
		bad.ID = id(2)
		tc.edit(&bad)
		taken, err := domain.Send(t.Context(), []domainclient.Event{good, bad})
		require.ErrorContains(t, err, tc.want)
		require.Zero(t, taken)
	}
	require.Zero(t, bus.Stats().Active)
}

func TestSend_FailsImmediatelyForATooLargeMessage(t *testing.T) {
	domain := newClient(t, domainclient.Options{Connect: connectTo(openBus(t)), Form: domainclient.JSON})
	e := eventsFor(alice, 1, 1)
	e[0].Payload = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	_, err := domain.Send(t.Context(), e)
	require.ErrorContains(t, err, "too large")
}

func TestSend_ReturnsPermanentErrorsImmediately(t *testing.T) {
	for name, o := range map[string]domainclient.Options{
		"a queue that does not exist": {Connect: connectTo(openBus(t)), Events: "elsewhere"},
		"a wrong key": {Connect: func() (*azservicebus.Client, error) {
			n := openBus(t)
			return azservicebus.NewClientFromConnectionString(strings.Replace(n.ConnectionString(""), embedded.WellKnownKey, "d3Jvbmc=", 1), &azservicebus.ClientOptions{
				NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return n.Dial(ctx) },
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, o).Send(t.Context(), eventsFor(alice, 1, 1))
			require.ErrorAs(t, err, new(*azservicebus.Error))
		})
	}
}

// A forgetfulConn breaks after events were sent but before their acknowledgement arrives, as often
// as the test specifies.
type forgetfulConn struct {
	net.Conn
	sent atomic.Bool
	lose *atomic.Int32
}

func (c *forgetfulConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("PriceList")) {
		c.sent.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *forgetfulConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	disposition := []byte{0x00, 0x53, 0x15}
	if bytes.Contains(p[:n], disposition) && c.sent.Load() && c.lose.Add(-1) >= 0 {
		return 0, fmt.Errorf("%w: lost on the way", io.ErrUnexpectedEOF)
	}
	return n, err
}

func TestSend_RepeatsAnUncertainBatchWithTheSameIDs(t *testing.T) {
	bus := openBus(t)
	var lose atomic.Int32
	lose.Store(2) // Microsoft's client gives up after the second lost acknowledgement, but Send continues
	domain := newClient(t, domainclient.Options{EventsPerMessage: 2, Form: domainclient.JSON, Connect: func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(bus.ConnectionString(""), &azservicebus.ClientOptions{
			NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				conn, err := bus.Dial(ctx)
				return &forgetfulConn{Conn: conn, lose: &lose}, err
			},
			RetryOptions: azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond},
		})
	}})
	taken, err := domain.Send(t.Context(), eventsFor(alice, 1, 4))
	require.NoError(t, err)
	require.Negative(t, lose.Load())
	require.Equal(t, 4, taken, "of what came several times, it counts once")
	var messages []string
	for _, m := range newHub(t, bus).receiveEvents(alice, 6) {
		messages = append(messages, m.MessageID)
	}
	require.NotEqual(t, messages[0], messages[1])
	require.Equal(t, [][]string{messages[:2], messages[:2]}, [][]string{messages[2:4], messages[4:]}, "the batch came three times, as it was")
}

func TestSend_RetriesUntilItsContextEnds(t *testing.T) {
	bus := openBus(t)
	require.NoError(t, bus.Close())
	domain := newClient(t, domainclient.Options{Connect: connectTo(bus)})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	taken, err := domain.Send(ctx, eventsFor(alice, 1, 1))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, taken)
}

// A handlerTransport passes requests to a handler without a network.
type handlerTransport struct{ handler http.Handler }

func (i handlerTransport) Do(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	i.handler.ServeHTTP(answer, r)
	return answer.Result(), nil
}

func TestSend_UsesADeletedQueueOnceItIsCreatedAgain(t *testing.T) {
	bus := openBus(t)
	operator, err := admin.NewClientFromConnectionString(bus.ConnectionString(""), &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: handlerTransport{bus.Handler()}}})
	require.NoError(t, err)
	create := func() {
		_, err := operator.CreateQueue(t.Context(), contract.DataAvailableFIFO, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{RequiresSession: to.Ptr(true)}})
		require.NoError(t, err)
	}
	remove := func() {
		_, err := operator.DeleteQueue(t.Context(), contract.DataAvailableFIFO, nil)
		require.NoError(t, err)
	}
	sender, hub := newClient(t, domainclient.Options{Connect: connectTo(bus)}), newHub(t, bus)
	arrives := func() {
		t.Helper()
		taken, err := sender.Send(t.Context(), eventsFor(alice, 1, 1))
		require.NoError(t, err)
		require.Equal(t, 1, taken)
		hub.receiveEvents(alice, 1)
	}
	arrives()
	remove()
	for range 3 {
		_, err := sender.Send(t.Context(), eventsFor(alice, 1, 1))
		require.Regexp(t, "not-?found", err)
	}
	create()
	arrives()
	remove()
	create()
	arrives()
}

func TestSend_FailsAfterClose(t *testing.T) {
	domain := newClient(t, domainclient.Options{Connect: connectTo(openBus(t))})
	require.NoError(t, domain.Close(t.Context()))
	_, err := domain.Send(t.Context(), eventsFor(alice, 1, 1))
	require.ErrorIs(t, err, domainclient.ErrClosed)
}
