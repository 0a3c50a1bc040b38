package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// deliveries runs a command about deliveries with the hub at url.
func deliveries(t *testing.T, url, name string, args ...string) result {
	t.Helper()
	return messagehub(t, "", append([]string{"deliveries", name, "--url", url, "--actor", actorA}, args...)...)
}

// publishEvent publishes an event to the default topic of a hub.
func publishEvent(t *testing.T, hub, id string) {
	t.Helper()
	event := strings.NewReader(`{"specversion":"1.0","id":"` + id + `","source":"/x","type":"made"}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hub+"/v1/events", event)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/cloudevents+json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
}

func TestDeliveries_AreListedShownAndExplained(t *testing.T) {
	hub := pushHub(t)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(receiver.Close)
	created := subscriptions(t, hub, "create", "--id", subscriptionA, "--callback-url", receiver.URL)
	require.Equal(t, 0, created.status, created.err)
	require.Equal(t, result{0, subscriptionA + " has no such deliveries\n", ""}, deliveries(t, hub, "list", subscriptionA))
	publishEvent(t, hub, "event-1")
	id := subscriptionA + ".0.0"
	var got result
	require.Eventually(t, func() bool {
		got = deliveries(t, hub, "list", subscriptionA, "--state", "retrying")
		return strings.Contains(got.out, id)
	}, 10*time.Second, 10*time.Millisecond)
	for _, want := range []string{"DELIVERY", "retrying", "event-1", "made", "the receiver failed (502); look at its log"} {
		require.Contains(t, got.out, want)
	}
	got = deliveries(t, hub, "show", id)
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "attempt 1")
	got = deliveries(t, hub, "explain", id)
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, id+" of event-1 (made) is retrying.\nAttempt 1 failed at ")
	require.Contains(t, got.out, " subscriptions test "+subscriptionA+" --actor "+actorA+" --url "+hub+": call the receiver")
	for _, args := range [][]string{{"list", subscriptionA}, {"show", id}, {"explain", id}} {
		got = deliveries(t, hub, args[0], args[1], "--json")
		require.Equal(t, 0, got.status, got.err)
		require.True(t, json.Valid([]byte(got.out)), got.out)
	}

	// An operator may read the delivery, but another actor may not.
	got = withToken(t, operatorToken, "deliveries", "show", id, "--url", hub)
	require.Equal(t, 0, got.status, got.err)
	got = messagehub(t, "", "deliveries", "show", id, "--url", hub, "--actor", "another")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "there is no subscription "+subscriptionA)
	for _, args := range [][]string{{"list", "x"}, {"list", subscriptionA, "--limit", "0"}, {"show", subscriptionA}, {"explain", id, "more"}} {
		require.Equal(t, exitUsage, deliveries(t, hub, args[0], args[1:]...).status, args)
	}
}

func TestSubscriptionsTest_SaysWhatTheReceiverAnswered(t *testing.T) {
	hub := pushHub(t)
	status := http.StatusOK
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte("some\x1bwords"))
	}))
	t.Cleanup(receiver.Close)
	created := subscriptions(t, hub, "create", "--id", subscriptionA, "--callback-url", receiver.URL)
	require.Equal(t, 0, created.status, created.err)
	got := subscriptions(t, hub, "test", subscriptionA)
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, " with status 200\n")
	require.Contains(t, got.out, "the answer begins: some")
	require.NotContains(t, got.out, "\x1b")
	status = http.StatusTeapot
	got = subscriptions(t, hub, "test", subscriptionA)
	require.Equal(t, exitFailed, got.status)
	require.Contains(t, got.out, "the receiver refused the message (418); look at its log")
	require.Empty(t, got.err)
	require.Equal(t, 1, subscriptions(t, hub, "test", subscriptionB).status)
}

func TestDeliveriesExplain_NamesTheCommandForAnAction(t *testing.T) {
	d := &deliveriesCommand{p: &process{args: []string{"messagehub"}}, url: hubclient.DefaultURL, actor: actorA}
	d.p.access.ca = "our ca.pem"
	delivery := subscriptionA + ".0.17"
	for path, want := range map[string]string{
		"/v1/subscriptions/" + subscriptionA + "/resume": "subscriptions resume " + subscriptionA + " --actor " + actorA + " --ca 'our ca.pem'",
		"/v1/deliveries/" + delivery + "/replay":         "deliveries replay " + delivery + " --actor " + actorA + " --ca 'our ca.pem'",
	} {
		require.Equal(t, programName("messagehub")+" "+want, d.commandFor(http.MethodPost, path))
	}
	require.Empty(t, d.commandFor(http.MethodPut, "/v1/subscriptions/"+subscriptionA))
	require.Empty(t, d.commandFor(http.MethodPost, "/v1/subscriptions/$(x)/resume"), "the hub returned an invalid id")
	require.Empty(t, d.commandFor(http.MethodPost, "/v1/deliveries/"+delivery+"/melt"))
	d.actor = ""
	require.Empty(t, d.commandFor(http.MethodPost, "/v1/deliveries/"+delivery+"/replay"), "an operator who omits --actor")
}
