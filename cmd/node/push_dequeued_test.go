package node_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// dequeueNext sends event i, peeks and dequeues a bundle, and returns the
// bundle's id.
func dequeueNext(t *testing.T, n *node.Node, i int) string {
	t.Helper()
	status, body := send(t, n, http.MethodPost, "/v1/data-available", "application/json", dataEvent(i))
	require.Equal(t, http.StatusAccepted, status, body)
	id := fmt.Sprintf("10000000-0000-4000-8000-%012d", i)
	status, body = send(t, n, http.MethodGet, "/v1/peek?bundleId="+id, "", "")
	require.Equal(t, http.StatusOK, status, body)
	status, body = send(t, n, http.MethodDelete, "/v1/dequeue/"+id, "", "")
	require.Equal(t, http.StatusOK, status, body)
	return id
}

// bundle returns the id of the bundle that a call about a Dequeue names.
func (c *receivedCall) bundle() string {
	data, _ := c.event["data"].(map[string]any)
	id, _ := data["bundleId"].(string)
	return id
}

func TestBundleDequeued_CallsItsSubscribers(t *testing.T) {
	r := startReceiver(t, nil)
	dir := t.TempDir()
	n, stop := start(t, pushSettings(dir), node.Options{})
	dequeueNext(t, n, 1) // causes no call, because there is no subscription yet
	id := createSubscription(t, n, fmt.Sprintf(`{"topic":"bundle-dequeued","callback_url":%q}`, r.URL))
	second := dequeueNext(t, n, 2)
	c := <-r.calls
	number := c.id()[len("an-actor/"+second+"/"):]
	require.NotEmpty(t, number)
	dequeued, _ := c.event["time"].(string)
	require.Equal(t, map[string]any{
		"specversion": "1.0", "id": "an-actor/" + second + "/" + number, "source": "/v1/bundles", "type": "messagehub.bundle-dequeued",
		"subject": "an-actor", "time": dequeued, "datacontenttype": "application/json",
		"data": map[string]any{"actor": "an-actor", "bundleId": second, "group": "masterdata", "origin": "Charges", "events": 1.0, "dequeued": dequeued},
	}, c.event)
	status, _ := send(t, n, http.MethodDelete, "/v1/dequeue/"+second, "", "") // a repeated Dequeue causes no second call
	require.Equal(t, http.StatusNotFound, status)
	third := dequeueNext(t, n, 3)
	c = <-r.calls
	require.Equal(t, third, c.bundle())

	status, _ = send(t, n, http.MethodPost, "/v1/events?topic=bundle-dequeued", structuredEvent, fmt.Sprintf(cloudEvent, "1"))
	require.Equal(t, http.StatusBadRequest, status)
	require.NoError(t, stop())

	// A node that does not call receivers does not deliver the notices of its
	// Dequeues; they remain in the outbox.
	n, stop = start(t, pushSettings(dir), node.Options{PullOnly: true})
	fourth, fifth := dequeueNext(t, n, 4), dequeueNext(t, n, 5)
	require.NoError(t, stop())
	n, stop = start(t, pushSettings(dir), node.Options{})
	sixth := dequeueNext(t, n, 6)
	var got []string // bundle ids; unordered, because calls overlap
	for range 3 {
		c = <-r.calls
		got = append(got, c.bundle())
	}
	require.ElementsMatch(t, []string{fourth, fifth, sixth}, got)

	status, body := send(t, n, http.MethodDelete, "/v1/subscriptions/"+id, "", "")
	require.Equal(t, http.StatusOK, status, body)
	dequeueNext(t, n, 7)
	createSubscription(t, n, fmt.Sprintf(`{"topic":"bundle-dequeued","callback_url":%q}`, r.URL))
	eighth := dequeueNext(t, n, 8)
	c = <-r.calls
	require.Equal(t, eighth, c.bundle())
	require.NoError(t, stop())
}
