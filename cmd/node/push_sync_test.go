package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// outcomesOf publishes an event. It returns the response's status, and the
// outcome for each subscription.
func outcomesOf(t *testing.T, n *node.Node, id string) (status int, outcomes map[string]string) {
	t.Helper()
	status, body := send(t, n, http.MethodPost, "/v1/events", structuredEvent, fmt.Sprintf(cloudEvent, id))
	var answer struct {
		Outcomes []struct {
			Subscription, State string
			Status              int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer), body)
	outcomes = make(map[string]string)
	for _, o := range answer.Outcomes {
		outcomes[o.Subscription] = fmt.Sprintf("%s %d", o.State, o.Status)
	}
	return status, outcomes
}

func TestAWaitingSender_GetsTheResultOfTheOnlyAttempt(t *testing.T) {
	r := startReceiver(t, func(c *receivedCall) int {
		if c.id() == "2" && c.header.Get("X-Dss-Notify-Attempt") == "0" {
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	})
	dir := t.TempDir()
	n, stop := start(t, pushSettings(dir), node.Options{})
	draft := fmt.Sprintf(`{"callback_url":%q,"delivery":"sync","headers":{"X-Key":"a token"}}`, r.URL)
	id := createSubscription(t, n, draft)
	status, outcomes := outcomesOf(t, n, "1")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, map[string]string{id: "delivered 204"}, outcomes)
	c := <-r.calls
	require.Equal(t, "a token", c.header.Get("X-Key"))
	status, outcomes = outcomesOf(t, n, "2")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, map[string]string{id: "failed 500"}, outcomes)
	<-r.calls
	require.NoError(t, stop())

	// After a restart, the subscription's delivery mode is still sync, and the
	// failed attempt is not retried.
	n, stop = start(t, pushSettings(dir), node.Options{})
	status, outcomes = outcomesOf(t, n, "3")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, map[string]string{id: "delivered 204"}, outcomes)
	c = <-r.calls
	require.Equal(t, "3", c.id())
	status, body := send(t, n, http.MethodGet, "/v1/deliveries?state=dead&subscription="+id, "", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"id":"`+id+`.0.1"`)

	status, body = send(t, n, http.MethodPut, "/v1/subscriptions/"+id, "application/json", fmt.Sprintf(`{"callback_url":%q}`, r.URL))
	require.Equal(t, http.StatusOK, status, body)
	publishEvents(t, n, "4") // the replaced subscription is not sync, so the sender does not wait
	c = <-r.calls
	require.Equal(t, "a token", c.header.Get("X-Key"), "the replacement has kept it")
	require.NoError(t, stop())
}

func TestASenderWaits_WhicheverNodeCalls(t *testing.T) {
	r := startReceiver(t, nil)
	a := newAccount(t)
	var nodes []*node.Node
	for range 2 {
		cfg := a.settings()
		cfg.Push.Allow, cfg.Push.InsecureHTTP = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true
		n, _ := start(t, cfg, node.Options{})
		nodes = append(nodes, n)
	}
	want := make(map[string]string)
	for range 6 { // each of the two nodes almost certainly serves at least one of the six subscriptions
		want[createSubscription(t, nodes[0], fmt.Sprintf(`{"callback_url":%q,"delivery":"sync"}`, r.URL))] = "delivered 204"
	}
	for i := range 6 {
		start := time.Now()
		status, outcomes := outcomesOf(t, nodes[i%2], fmt.Sprint(i))
		require.Equal(t, want, outcomes, "after %v", time.Since(start))
		require.Equal(t, http.StatusOK, status)
	}
}
