package node_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// The same events arrive over HTTP, over the bus and, after a restart of the
// hub, over HTTP again. The hub must recognize the duplicates.
func TestObjectEvents_AreAcceptedOverHTTPAndTheBus(t *testing.T) {
	const events = `{"Records":[` +
		`{"eventTime":"2026-03-01T12:00:00Z","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"readings"},"object":{"key":"a+b","sequencer":"01"}}},` +
		`{"eventTime":"2026-03-01T12:00:00Z","eventName":"LifecycleTransition","s3":{"bucket":{"name":"readings"},"object":{"key":"a+b"}}},{}]}`
	cfg := settings(t.TempDir())
	cfg.BusListen = "127.0.0.1:0"
	n, stop := start(t, cfg, node.Options{})
	post := func(headers ...string) (int, string) {
		return send(t, n, http.MethodPost, "/v1/object-events", "application/json", events, headers...)
	}
	status, body := post()
	require.Equal(t, http.StatusUnauthorized, status, body)
	status, body = post("Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusOK, status, body)
	const refused = `"ignored":0,"refused":[{"index":2,"pointer":"/Records/2","reason":"unknown-form",`
	require.Contains(t, body, `{"accepted":2,"duplicates":0,`+refused)

	client, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://"+n.BusAddr().String()+";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true", nil)
	require.NoError(t, err)
	sender, err := client.NewSender(cfg.Objects.Queue, nil)
	require.NoError(t, err)
	require.NoError(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(events)}, nil))
	require.NoError(t, client.Close(t.Context()))
	require.Eventually(t, func() bool {
		stored := map[string]float64{}
		families, err := n.Gatherer().Gather()
		require.NoError(t, err)
		for _, family := range families {
			if family.GetName() == "messagehub_servicebus_object_events_total" {
				for _, m := range family.GetMetric() {
					stored[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
		return stored["stored"] == 1 && stored["duplicate"] == 1 && stored["refused"] == 1
	}, time.Minute, 5*time.Millisecond, "in another message, the event without sequencer is another one")

	require.NoError(t, stop())
	n, _ = start(t, cfg, node.Options{})
	status, body = post("Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `{"accepted":0,"duplicates":2,`+refused)
}
