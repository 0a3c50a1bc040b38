package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeliveries_AreReplayed(t *testing.T) {
	hub := pushHub(t)
	var calls atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(receiver.Close)
	require.Equal(t, 0, subscriptions(t, hub, "create", "--id", subscriptionA, "--callback-url", receiver.URL).status)
	publishEvent(t, hub, "event-1")
	publishEvent(t, hub, "event-2")
	called := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool { return calls.Load() == n }, 10*time.Second, 5*time.Millisecond)
	}
	called(2)
	require.Eventually(t, func() bool {
		return strings.Count(deliveries(t, hub, "list", subscriptionA, "--state", "delivered").out, subscriptionA) == 2
	}, 10*time.Second, 10*time.Millisecond)
	got := deliveries(t, hub, "replay", subscriptionA+".0.1")
	require.Equal(t, result{0, subscriptionA + ".0.1 is repeated\n", ""}, got)
	called(3)

	got = subscriptions(t, hub, "replay", subscriptionA, "--from", "1h", "--of", "all", "--filter", "id == 'event-1'", "--dry-run")
	require.Equal(t, result{0, "deliveries that would be repeated: 1\n", ""}, got)
	got = subscriptions(t, hub, "replay", subscriptionA, "--from", "1h", "--to", "-1h", "--of", "all", "--filter", "id == 'event-1'")
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, " is requested: ")
	id := strings.Fields(got.out)[1]
	called(4)
	require.Eventually(t, func() bool {
		return strings.Contains(subscriptions(t, hub, "replay", subscriptionA, "--show", id).out, "is done: 1 repeated")
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, 0, subscriptions(t, hub, "replay", subscriptionA, "--stop", id).status)
	got = subscriptions(t, hub, "replay", subscriptionA, "--from", "yesterday")
	require.NotEqual(t, 0, got.status)
	require.Contains(t, got.err, "--from: want a time")
}
