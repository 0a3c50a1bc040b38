package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// pushHub starts an in-memory hub that may call receivers on this machine.
func pushHub(t *testing.T, changes ...func(*config.Config)) (url string) {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.BusListen, cfg.BlobListen, cfg.InMemory = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", true
	cfg.Data, cfg.Admin.Token = t.TempDir(), operatorToken
	cfg.Push.Allow, cfg.Push.InsecureHTTP = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true
	for _, change := range changes {
		change(&cfg)
	}
	n, err := node.Open(t.Context(), cfg, node.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return n.URL()
}

// With the same secret, messagehub listen must verify the calls of a hub.
func TestListen_VerifiesTheCallsOfAHub(t *testing.T) {
	hub := pushHub(t)
	for _, tc := range []struct {
		secret string   // secret of the subscription
		flags  []string // flags of messagehub listen
		scheme string
	}{
		{webhookSecret, []string{"--secret", webhookSecret}, "v1"},
		{"whsk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", []string{"--secret", "whpk_O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik="}, "v1a"},
		{"a secret", []string{"--hmac-key", "a secret"}, "hmac-sha256"},
	} {
		called := make(chan []byte, 1)
		listener, stop := startListenTo(t, called, append(tc.flags, "--json")...)
		created := subscriptions(t, hub, "create", "--callback-url", listener+"hook", "--secret", tc.secret, "--topic", tc.scheme)
		require.Equal(t, 0, created.status, created.err)
		event := strings.NewReader(`{"specversion":"1.0","id":"1","source":"/x","type":"made","data":{"a":1}}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hub+"/v1/events?topic="+tc.scheme, event)
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/cloudevents+json")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusAccepted, resp.StatusCode)

		var call struct {
			Path, Problem string
			Status        int
			Schemes       []string
			Headers       map[string]string
		}
		require.NoError(t, json.Unmarshal(<-called, &call))
		require.Equal(t, "/hook", call.Path)
		require.Equal(t, []string{tc.scheme}, call.Schemes, call.Problem)
		require.Equal(t, http.StatusOK, call.Status)
		require.Equal(t, "0", call.Headers["x-dss-notify-attempt"])
		require.Contains(t, stop(), "1 call, 1 verified, 0 refused, 0 repeated\n")
		require.Equal(t, 0, subscriptions(t, hub, "delete", strings.Fields(created.out)[1]).status)
	}
}
