package node_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/messagehub/messagehub/cmd/node"
)

// requireLinksToParents checks that a span has exactly these links, given as
// values of traceparent headers.
func requireLinksToParents(t *testing.T, s *tracepb.Span, parents ...string) {
	t.Helper()
	var got []string
	for _, l := range s.GetLinks() {
		got = append(got, "00-"+hex.EncodeToString(l.GetTraceId())+"-"+hex.EncodeToString(l.GetSpanId())+"-01")
	}
	require.Equal(t, parents, got, "links of %s", s.GetName())
}

// cloudEventOf returns a CloudEvent that announces data for an actor and has
// the extension traceparent.
func cloudEventOf(id int, traceParent string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":"%08x-0000-4000-8000-000000000000","source":"/test","type":"DataAvailable","subject":"5790001330552","traceparent":%q,"data":`+
		`{"origin":"Charges","contentType":"c","documentType":"d","supportsBundling":true,"weight":1}}`, id, traceParent)
}

const zeroParent = "00-00000000000000000000000000000000-0000000000000000-01"

func TestTrace_ABatchLinksToTheTracesOfItsCloudEvents(t *testing.T) {
	r := newSpanReceiver(t)
	cfg := settings("")
	cfg.BusListen = "127.0.0.1:0"
	n := startTraced(t, r, cfg)
	client, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://"+n.BusAddr().String()+";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true", nil)
	require.NoError(t, err)
	sender, err := client.NewSender("dataavailable-fifo", nil)
	require.NoError(t, err)
	const actor = "5790001330552"
	batch := "[" + strings.Join([]string{
		cloudEventOf(1, parentOf(domainTrace)), cloudEventOf(2, parentOf(actorTrace)), cloudEventOf(3, parentOf(domainTrace)), cloudEventOf(4, zeroParent),
	}, ",") + "]"
	message := &azservicebus.Message{Body: []byte(batch), ContentType: new("application/cloudevents-batch+json"), SessionID: new(actor)}
	require.NoError(t, sender.SendMessage(t.Context(), message, nil))
	require.NoError(t, client.Close(context.WithoutCancel(t.Context())))
	resp, body := get(t, n.URL()+"/v1/peek?wait=60s", "X-Actor-Id", actor)
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	n.stop()
	received, process := r.spanNamed(t, "receive dataavailable-fifo"), r.spanNamed(t, "process dataavailable-fifo")
	requireLinksToParents(t, received, parentOf(domainTrace), parentOf(actorTrace))
	requireChild(t, process, hex.EncodeToString(received.GetTraceId()), idOf(received))
	requireLinks(t, r.spanNamed(t, peekRoute), process)
}

func TestTrace_OfAnEventOfAnObjectIsLinked(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, settings(""))
	event := `{"specversion":"1.0","id":"1","source":"/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/a","type":"Microsoft.Storage.BlobCreated",` +
		`"subject":"/blobServices/default/containers/readings/blobs/a","time":"2026-03-01T12:00:00Z","traceparent":"` + parentOf(domainTrace) + `",` +
		`"data":{"api":"PutBlob","eTag":"0x8D4BCC2E4835CD0","contentLength":1,"sequencer":"00000000000004420000000000028963"}}`
	status, body := send(t, n.Node, http.MethodPost, "/v1/object-events", structuredEvent, event, "Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `{"accepted":1,`)
	n.stop()
	requireLinksToParents(t, r.spanNamed(t, "POST /v1/object-events"), parentOf(domainTrace))
}

// The first call fails, so that the second call reads the event from the store.
// The spans of both calls must belong to the message's trace.
func TestTrace_ACallBelongsToTheTraceOfItsMessage(t *testing.T) {
	r := newSpanReceiver(t)
	cfg := pushSettings(t.TempDir())
	cfg.Push.Delays = []time.Duration{0, 10 * time.Millisecond, time.Hour}
	n := startTraced(t, r, cfg)
	fails := true
	receiver := startReceiver(t, func(*receivedCall) int {
		if fails {
			fails = false
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	})
	createSubscription(t, n.Node, `{"callback_url":"`+receiver.URL+`"}`)
	status, body := send(t, n.Node, http.MethodPost, "/v1/events", structuredEvent, fmt.Sprintf(cloudEvent, "1"), "Traceparent", parentOf(domainTrace))
	require.Equal(t, http.StatusAccepted, status, body)
	first, second := <-receiver.calls, <-receiver.calls
	n.stop()
	require.Equal(t, first.body, second.body)
	require.NotContains(t, string(first.body), "traceparent", "the body is as it was sent")
	accepted, calls := r.spanNamed(t, "POST /v1/events"), r.all("send subscription")
	requireChild(t, accepted, domainTrace, aSpan)
	require.Len(t, calls, 2)
	for _, c := range calls {
		requireChild(t, c, domainTrace, idOf(accepted))
		requireLinks(t, c)
	}
}

func TestTrace_ACallBelongsToTheTraceOfItsCloudEvent(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, pushSettings(""))
	receiver := startReceiver(t, nil)
	createSubscription(t, n.Node, `{"callback_url":"`+receiver.URL+`"}`)
	traced := strings.Replace(fmt.Sprintf(cloudEvent, "1"), `"data"`, `"traceparent":"`+parentOf(domainTrace)+`","data"`, 1)
	status, body := send(t, n.Node, http.MethodPost, "/v1/events", structuredEvent, traced, "Traceparent", parentOf(actorTrace))
	require.Equal(t, http.StatusAccepted, status, body)
	<-receiver.calls
	n.stop()
	accepted, sent := r.spanNamed(t, "POST /v1/events"), r.spanNamed(t, "send subscription")
	requireChild(t, accepted, actorTrace, aSpan)
	requireLinksToParents(t, accepted, parentOf(domainTrace))
	requireChild(t, sent, domainTrace, aSpan)
	requireLinks(t, sent, accepted)
}

func TestTrace_ABrokerDeliveryBelongsToTheTraceOfItsBroadcast(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, brokerSettings(""))
	consumer := startReceiver(t, nil)
	putChannel(t, n.Node, map[string]string{"first": consumer.URL})
	broadcast(t, n.Node, "price;1\n", "Content-Type", "text/csv", "Traceparent", parentOf(domainTrace))
	got := <-consumer.calls
	n.stop()
	sent := r.spanNamed(t, "send consumer")
	requireChild(t, sent, domainTrace, idOf(r.spanNamed(t, "POST /broker/channel/{channelId}/broadcast")))
	require.Equal(t, "00-"+domainTrace+"-"+idOf(sent)+"-01", got.header.Get("Traceparent"))
}

func TestTrace_ADequeueNotificationBelongsToTheTraceOfThePeek(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, pushSettings(""))
	receiver := startReceiver(t, nil)
	status, body := send(t, n.Node, http.MethodPost, "/v1/subscriptions", "application/json", `{"topic":"bundle-dequeued","callback_url":"`+receiver.URL+`"}`, "X-Actor-Id", "a")
	require.Equal(t, http.StatusCreated, status, body)
	fetchEvent(t, n.Node, n.Node, n.Node)
	<-receiver.calls
	n.stop()
	requireChild(t, r.spanNamed(t, "send subscription"), actorTrace, idOf(r.spanNamed(t, peekRoute)))
}

func TestTrace_OfOneMegabyteIsRefusedByTheLimitOfHeaders(t *testing.T) {
	n, stop := start(t, settings(""), node.Options{})
	resp, _ := get(t, n.URL()+"/v1/peek", "Traceparent", strings.Repeat("0", 1<<20))
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
	require.NoError(t, stop())
}
