package node_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/certificate"
)

// getOver sends a GET over a transport. It closes the body of the response that
// it returns.
func getOver(t *testing.T, transport *http.Transport, url string) *http.Response {
	t.Helper()
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	req.Header.Set("X-Actor-Id", "5790001330552")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp
}

func TestHTTP2WithoutTLSIsSpokenOnLoopback(t *testing.T) {
	n, stop := start(t, settings(""), node.Options{})
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	for path, status := range map[string]int{"/healthz": 200, "/broker/producers": 401, "/v1/peek?wait=10ms": 204} {
		resp := getOver(t, &http.Transport{Protocols: h2c}, n.URL()+path)
		require.Equal(t, 2, resp.ProtoMajor)
		require.Equal(t, status, resp.StatusCode, path)
		require.Equal(t, 1, getOver(t, &http.Transport{}, n.URL()+path).ProtoMajor)
	}
	require.NoError(t, stop())
}

func TestHTTPSIsSpokenWithACertificateThatMayBeRenewed(t *testing.T) {
	dir := t.TempDir()
	files := config.TLS{Certificate: filepath.Join(dir, certificate.FileName), Key: filepath.Join(dir, certificate.KeyName)}
	_, err := certificate.Load(dir, "127.0.0.1")
	require.NoError(t, err)
	cfg := settings("")
	cfg.TLS = files
	n, stop := start(t, cfg, node.Options{})
	require.True(t, strings.HasPrefix(n.URL(), "https://"))
	serial := func() string {
		text, err := os.ReadFile(files.Certificate)
		require.NoError(t, err)
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(text))
		resp := getOver(t, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}, n.URL()+"/healthz")
		require.Equal(t, 2, resp.ProtoMajor)
		require.Equal(t, 200, resp.StatusCode)
		return resp.TLS.PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	require.NoError(t, os.Remove(files.Certificate))
	require.NoError(t, os.Remove(files.Key))
	_, err = certificate.Load(dir, "127.0.0.1")
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(files.Key, time.Time{}, time.Now().Add(time.Second))) // changes the modification time, because file times are coarse
	require.NotEqual(t, first, serial())
	require.NoError(t, stop())
}

func TestACertificateThatCannotBeReadEndsTheStart(t *testing.T) {
	cfg := settings("")
	cfg.TLS = config.TLS{Certificate: "/nowhere.crt", Key: "/nowhere.key"}
	_, err := node.Open(context.Background(), cfg, node.Options{})
	require.ErrorContains(t, err, "tls.cert")
}
