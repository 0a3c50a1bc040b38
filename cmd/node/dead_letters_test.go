package node_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// No hub can store the message, so after an operator resends it, it becomes a
// dead letter again, with a new sequence number. The records of operators'
// actions must survive a restart of the node.
func TestDeadLetters_AreSentAgainFromTheQueueOfANode(t *testing.T) {
	cfg := settings(t.TempDir())
	cfg.BusListen = "127.0.0.1:0"
	n, stop := start(t, cfg, node.Options{})
	bearer := []string{"Authorization", "Bearer " + adminToken}
	const letters = "/v1/admin/dead-letters"
	call := func(method, path, body string, status int) string {
		t.Helper()
		got, text := send(t, n, method, letters+path, "application/json", body, bearer...)
		require.Equal(t, status, got, text)
		return text
	}
	type letter struct{ SequenceNumber, MessageID, Reason, ResentBy, Session string }
	list := func(queue string) (found []letter) {
		var page struct{ DeadLetters []letter }
		require.NoError(t, json.Unmarshal([]byte(call("GET", "?queue="+queue, "", 200)), &page))
		return page.DeadLetters
	}

	client, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://"+n.BusAddr().String()+";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true", nil)
	require.NoError(t, err)
	sender, err := client.NewSender(cfg.ServiceBus.FIFO, nil)
	require.NoError(t, err)
	require.NoError(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("{"), ContentType: to.Ptr("application/json"), MessageID: to.Ptr("m"), SessionID: to.Ptr("5790001330552")}, nil))
	require.NoError(t, client.Close(t.Context()))
	require.Eventually(t, func() bool { return len(list(cfg.ServiceBus.FIFO)) == 1 }, time.Minute, 5*time.Millisecond)
	require.Equal(t, letter{SequenceNumber: "1", MessageID: "m", Reason: "not-json", Session: "5790001330552"}, list(cfg.ServiceBus.FIFO)[0])
	require.Contains(t, call("GET", "", "", 200), `"queue":"`+cfg.ServiceBus.FIFO+`","use":"events, in the order of each recipient","deadLetters":1`)
	_, metrics := send(t, n, http.MethodGet, "/metrics", "", "", bearer...)
	require.Contains(t, metrics, `messagehub_servicebus_dead_letters{queue="`+cfg.ServiceBus.FIFO+`"} 1`)

	fifo, order := "/"+url.PathEscape(cfg.ServiceBus.FIFO), "?who=kim&why=ticket+4711"
	require.Contains(t, call("GET", fifo+"/1"+order, "", 200), `"text":"{"`)
	call("POST", fifo+"/1/resend", `{"who":"kim","why":"ticket 4711"}`, 204)
	require.Eventually(t, func() bool { return len(list(cfg.ServiceBus.FIFO)) == 1 }, time.Minute, 5*time.Millisecond)
	require.Equal(t, letter{SequenceNumber: "2", MessageID: "m", Reason: "not-json", ResentBy: "kim", Session: "5790001330552"}, list(cfg.ServiceBus.FIFO)[0])
	call("DELETE", fifo+"/2"+order, "", 204)
	require.Empty(t, list(cfg.ServiceBus.FIFO))
	for _, queue := range []string{"/timeseries-reply", "/timeseries"} {
		require.Contains(t, call("POST", queue+"/1/resend", `{"who":"kim","why":"ticket 4711"}`, 409), "are not sent again")
	}
	call("POST", "/timeseries-dequeue/1/resend", `{"who":"kim","why":"ticket 4711"}`, 404)

	require.NoError(t, stop())
	n, _ = start(t, cfg, node.Options{})
	var answer struct {
		Records []struct{ What, Outcome, MessageID string }
	}
	require.NoError(t, json.Unmarshal([]byte(call("GET", fifo+"/records", "", 200)), &answer))
	require.Equal(t, []struct{ What, Outcome, MessageID string }{{"delete", "done", "m"}, {"resend", "done", "m"}, {"look", "done", "m"}}, answer.Records)
}
