package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// reportSizedObject sends a store's report about an object of this size.
func reportSizedObject(t *testing.T, n *node.Node, event, key, sequencer string, size int64) {
	t.Helper()
	body := fmt.Sprintf(`{"Records":[{"eventTime":"2026-03-01T12:00:00Z","eventName":"%s","s3":{"bucket":{"name":"readings"},"object":{"key":"%s","size":%d,"eTag":"e%s","sequencer":"%s"}}}]}`, event, key, size, sequencer, sequencer)
	status, answer := send(t, n, http.MethodPost, "/v1/object-events", "application/json", body, "Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusOK, status, answer)
}

// objectSubscription creates a subscription to changes of objects with the
// operators' token, and returns its id.
func objectSubscription(t *testing.T, n *node.Node, draft string) string {
	t.Helper()
	status, body := send(t, n, http.MethodPost, "/v1/subscriptions", "application/json", draft, "Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusCreated, status, body)
	var stored struct{ UUID string }
	require.NoError(t, json.Unmarshal([]byte(body), &stored))
	return stored.UUID
}

// change returns the data of the event that a call contains.
func change(c receivedCall) map[string]any {
	data, _ := c.event["data"].(map[string]any)
	return data
}

func TestASubscriptionToObjects_IsCalledWithEachChange(t *testing.T) {
	r := startReceiver(t, nil)
	cfg := pushSettings(t.TempDir())
	cfg.Objects.Topic = true
	n, stop := start(t, cfg, node.Options{})
	const created, removed = "ObjectCreated:Put", "ObjectRemoved:Delete"
	// The subscription under test is created later, and must not get this
	// change. When the earlier subscription has been called with the change, it
	// has been published, so a new subscription starts after it.
	earlier := startReceiver(t, nil)
	id := objectSubscription(t, n, fmt.Sprintf(`{"topic":"object-changed","callback_url":%q}`, earlier.URL))
	reportSizedObject(t, n, created, "before", "01", 1)
	require.Equal(t, "before", change(<-earlier.calls)["key"])
	status, body := send(t, n, http.MethodDelete, "/v1/subscriptions/"+id, "", "", "Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusOK, status, body)

	draft := fmt.Sprintf(`{"topic":"object-changed","ordered":true,"callback_url":%q}`, r.URL)
	status, body = send(t, n, http.MethodPost, "/v1/subscriptions", "application/json", draft)
	require.Equal(t, http.StatusUnauthorized, status, body)
	id = objectSubscription(t, n, draft)
	status, body = send(t, n, http.MethodPut, "/v1/subscriptions/"+id, "application/json", draft)
	require.Equal(t, http.StatusUnauthorized, status, body)
	status, body = send(t, n, http.MethodPut, "/v1/subscriptions/"+id, "application/json", draft, "Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusOK, status, body)

	reportSizedObject(t, n, created, "a", "01", 9_007_199_254_740_993)
	c := <-r.calls
	var list struct {
		Results []struct{ ID string }
	}
	getJSON(t, n, "/v1/objects?bucket=readings&key=a", &list)
	changed, _ := c.event["time"].(string)
	version, _ := change(c)["version"].(float64)
	require.Positive(t, version)
	require.Equal(t, map[string]any{
		"specversion": "1.0", "id": c.id(), "source": "/v1/objects", "type": "messagehub.object-changed",
		"subject": c.event["subject"], "time": changed, "datacontenttype": "application/json",
		"data": map[string]any{
			"event": "created", "bucket": "readings", "key": "a", "version": version, "changed": changed,
			"id": list.Results[0].ID, "versionId": "null", "eventTime": "2026-03-01T12:00:00Z",
			"size": 9_007_199_254_740_993.0, "eTag": `"e01"`, "reason": "CreatedPut",
		},
	}, c.event)
	require.Contains(t, string(c.body), "9007199254740993", "a size is exact")
	getJSON(t, n, "/v1/objects/"+c.event["subject"].(string), &struct{}{})

	reportSizedObject(t, n, created, "a", "01", 9_007_199_254_740_993) // a duplicate
	reportSizedObject(t, n, created, "a", "00", 1)                     // an event older than the stored one changes nothing
	reportSizedObject(t, n, created, "a", "02", 2)
	reportSizedObject(t, n, removed, "a", "03", 0)
	var events []string
	for range 2 {
		c = <-r.calls
		next, _ := change(c)["version"].(float64)
		require.Greater(t, next, version)
		version = next
		events = append(events, fmt.Sprint(change(c)["event"], " ", change(c)["eTag"]))
	}
	require.Equal(t, []string{`updated "e02"`, `deleted "e02"`}, events)

	status, body = send(t, n, http.MethodPost, "/v1/events?topic=object-changed", structuredEvent, fmt.Sprintf(cloudEvent, "1"))
	require.Equal(t, http.StatusBadRequest, status, body)
	require.NoError(t, stop())

	n, stop = start(t, cfg, node.Options{})
	reportSizedObject(t, n, created, "b", "01", 1)
	require.Equal(t, "b", change(<-r.calls)["key"])
	require.NoError(t, stop())
	require.Empty(t, r.calls)
}

func TestASubscriptionToObjects_HasAFilter(t *testing.T) {
	r := startReceiver(t, nil)
	cfg := pushSettings(t.TempDir())
	cfg.Objects.Topic = true
	n, stop := start(t, cfg, node.Options{})
	objectSubscription(t, n, fmt.Sprintf(`{"topic":"object-changed","callback_url":%q,
		"jmespath_query":"data.bucket == 'readings' && starts_with(data.key, 'march/') && data.event == 'created' && data.size > `+"`100`"+`"}`, r.URL))
	for i, key := range []string{"april/1", "march/small", "march/1", "march/1", "march/2"} {
		size := int64(512)
		if strings.HasSuffix(key, "small") {
			size = 1
		}
		reportSizedObject(t, n, "ObjectCreated:Put", key, fmt.Sprintf("%02d", i), size) // march/1 is reported twice: the second time as an update
	}
	keys := []string{change(<-r.calls)["key"].(string), change(<-r.calls)["key"].(string)}
	require.ElementsMatch(t, []string{"march/1", "march/2"}, keys)
	require.NoError(t, stop())
	require.Empty(t, r.calls)
}

func TestAHubWithoutTheTopicOfObjects_RefusesItsSubscriptions(t *testing.T) {
	n, stop := start(t, pushSettings(t.TempDir()), node.Options{})
	status, body := send(t, n, http.MethodPost, "/v1/subscriptions", "application/json", `{"topic":"object-changed","callback_url":"http://127.0.0.1:9/"}`, "Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusBadRequest, status, body)
	require.Contains(t, body, "objects.topic")
	require.NoError(t, stop())
}
