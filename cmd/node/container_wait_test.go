package node_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

func TestWaitForContainers_NamesTheDifferenceUntilItIsCorrected(t *testing.T) {
	a := newAccount(t)
	a.provision()
	a.change("bundles", func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = nil })
	cfg := a.settings()
	cfg.Listen, cfg.AdminListen = closedPort(t), closedPort(t)
	opts := node.Options{ReadinessInterval: 5 * time.Millisecond}
	_, fault := node.Open(t.Context(), cfg, opts)
	require.True(t, node.IsContainerFault(fault), fault)

	waited := make(chan error, 1)
	go func() { waited <- node.WaitForContainers(t.Context(), &cfg, fault, opts) }()
	var body string
	for _, address := range []string{cfg.Listen, cfg.AdminListen} {
		at := "http://" + address
		require.Eventually(t, func() bool {
			resp, err := http.Get(at + "/healthz")
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		}, 10*time.Second, time.Millisecond)
		for _, path := range []string{"/readyz", "/v1/peek", "/v1/admin/queues"} {
			var status int
			status, body = call(t, http.MethodGet, at+path, "a", "")
			require.Equal(t, http.StatusServiceUnavailable, status, path)
			require.Contains(t, body, "urn:messagehub:problem:not-ready")
			require.Contains(t, body, `"name":"containers","reason":"check the containers: container bundles: its default TTL is not set`)
		}
		status, _ := call(t, http.MethodPost, at+"/v1/data-available", "", event)
		require.Equal(t, http.StatusServiceUnavailable, status)
	}

	_, err := a.container("catalog").Delete(t.Context(), nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, body = call(t, http.MethodGet, "http://"+cfg.Listen+"/readyz", "", "")
		return strings.Contains(body, "container catalog of database messagehub: it does not exist")
	}, 10*time.Second, time.Millisecond, "it names what is wrong now")
	a.provision()
	require.NoError(t, <-waited)
	n, stop := start(t, cfg, opts)
	status, body := call(t, http.MethodGet, n.URL()+"/readyz", "", "")
	require.Equal(t, http.StatusOK, status, body)
	require.NoError(t, stop())
}

func TestWaitForContainers_EndsWithItsContext(t *testing.T) {
	a := newAccount(t)
	a.provision()
	a.change("bundles", func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = nil })
	cfg := a.settings()
	_, fault := node.Open(t.Context(), cfg, node.Options{})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, node.WaitForContainers(ctx, &cfg, fault, node.Options{}))
	cfg.Listen = serveNoHub(t)
	require.ErrorContains(t, node.WaitForContainers(t.Context(), &cfg, fault, node.Options{}), "another process has this port")
}
