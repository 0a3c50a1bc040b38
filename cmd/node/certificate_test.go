package node_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// serverFiles writes a server certificate and its key, and returns their paths.
func serverFiles(t *testing.T, ca *authority) config.TLS {
	t.Helper()
	dir := t.TempDir()
	files := config.TLS{Certificate: filepath.Join(dir, "hub.crt"), Key: filepath.Join(dir, "hub.key")}
	ca.writeServer(t, files)
	return files
}

// client returns an HTTP/2 transport for a client that trusts ca and presents
// these certificates.
func (ca *authority) client(shown ...tls.Certificate) *http.Transport {
	return &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: ca.pool(), Certificates: shown, MinVersion: tls.VersionTLS12}}
}

func TestTLS_OldCertificateStaysUntilTheNewPairIsComplete(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	cfg := settings("")
	cfg.TLS = serverFiles(t, first)
	var log bytes.Buffer
	n, stop := start(t, cfg, node.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	answersTo := func(ca *authority) {
		t.Helper()
		resp := getOver(t, ca.client(), n.URL()+"/healthz")
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, 2, resp.ProtoMajor)
		require.Equal(t, "max-age=31536000", resp.Header.Get("Strict-Transport-Security"))
	}
	answersTo(first)

	next := serverFiles(t, second)
	whole, err := os.ReadFile(next.Certificate)
	require.NoError(t, err)
	for _, text := range [][]byte{whole, whole[:len(whole)/2], []byte("no certificate"), nil} { // each text is combined with the key of the first certificate
		require.NoError(t, os.WriteFile(cfg.TLS.Certificate, text, 0o600))
		answersTo(first)
	}
	require.NoError(t, os.Rename(next.Key, cfg.TLS.Key))
	answersTo(first)
	require.NoError(t, os.Rename(next.Certificate, cfg.TLS.Certificate))
	hourAgo := time.Now().Add(-time.Hour) // a copy with cp -p has such an old modification time
	require.NoError(t, os.Chtimes(cfg.TLS.Certificate, hourAgo, hourAgo))
	answersTo(second)
	require.NoError(t, stop())
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("was not renewed")), log.String())
}

func TestTLS_ExportsTheTimesOfItsCertificate(t *testing.T) {
	ca := newAuthority(t)
	cfg := settings("")
	cfg.TLS = serverFiles(t, ca)
	registry := prometheus.NewRegistry()
	n, stop := start(t, cfg, node.Options{Registry: registry})
	leaf := getOver(t, ca.client(), n.URL()+"/healthz").TLS.PeerCertificates[0]
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
# HELP messagehub_certificate_expiry_timestamp_seconds When the certificate of the server ends to be valid. A hub without TLS does not export it.
# TYPE messagehub_certificate_expiry_timestamp_seconds gauge
messagehub_certificate_expiry_timestamp_seconds %d
# HELP messagehub_certificate_start_timestamp_seconds When the certificate of the server began to be valid. A hub without TLS does not export it.
# TYPE messagehub_certificate_start_timestamp_seconds gauge
messagehub_certificate_start_timestamp_seconds %d
`, leaf.NotAfter.Unix(), leaf.NotBefore.Unix())), "messagehub_certificate_expiry_timestamp_seconds", "messagehub_certificate_start_timestamp_seconds"))
	require.NoError(t, stop())

	plain := prometheus.NewRegistry()
	_, stop = start(t, settings(""), node.Options{Registry: plain})
	count, err := testutil.GatherAndCount(plain, "messagehub_certificate_expiry_timestamp_seconds")
	require.NoError(t, err)
	require.Zero(t, count)
	require.NoError(t, stop())
}

func TestTLS_AsksForClientCertificatesOfItsAuthorities(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	cfg := settings("")
	cfg.TLS = serverFiles(t, ca)
	cfg.TLS.ClientCA = filepath.Join(t.TempDir(), "clients.crt")
	require.NoError(t, os.WriteFile(cfg.TLS.ClientCA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}), 0o600))
	subjects := make(chan string, 3)
	n, stop := start(t, cfg, node.Options{WrapHandler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			subject := ""
			if len(r.TLS.VerifiedChains) > 0 {
				subject = r.TLS.PeerCertificates[0].Subject.CommonName
			}
			subjects <- subject
			next.ServeHTTP(w, r)
		})
	}})
	tomorrow := time.Now().Add(24 * time.Hour)
	require.Equal(t, 200, getOver(t, ca.client(ca.issueClient(t, "supplier", tomorrow)), n.URL()+"/healthz").StatusCode)
	require.Equal(t, "supplier", <-subjects)
	require.Equal(t, 200, getOver(t, ca.client(), n.URL()+"/healthz").StatusCode, "a client without a certificate")
	require.Empty(t, <-subjects)
	for name, shown := range map[string]tls.Certificate{
		"expired":              ca.issueClient(t, "supplier", time.Now().Add(-time.Minute)),
		"of another authority": other.issueClient(t, "supplier", tomorrow),
	} {
		config := ca.client().TLSClientConfig.Clone()
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
		conn, err := tls.Dial("tcp", strings.TrimPrefix(n.URL(), "https://"), config)
		require.NoError(t, err, "a client of TLS 1.3 shakes hands before the hub has read its certificate")
		_, err = conn.Read(make([]byte, 1)) // the alert is read before a request is sent, because a request on the closed connection would fail with another error
		require.ErrorContains(t, err, "remote error: tls: ", name)
		_ = conn.Close() // Close may fail, because the hub closes the connection too
	}
	require.NoError(t, stop())
}

// writeAuthority writes the authority's certificate to a file, replacing any
// existing file.
func (ca *authority) writeAuthority(t *testing.T, file string) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
	require.NoError(t, os.WriteFile(file+".new", text, 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

func TestTLS_OldAuthoritiesStayUntilTheFileHasNewOnes(t *testing.T) {
	server, first, second := newAuthority(t), newAuthority(t), newAuthority(t)
	cfg := settings("")
	cfg.TLS = serverFiles(t, server)
	cfg.TLS.ClientCA = filepath.Join(t.TempDir(), "clients.crt")
	first.writeAuthority(t, cfg.TLS.ClientCA)
	var log bytes.Buffer
	n, stop := start(t, cfg, node.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	tomorrow := time.Now().Add(24 * time.Hour)
	ofFirst, ofSecond := first.issueClient(t, "supplier", tomorrow), second.issueClient(t, "supplier", tomorrow)
	// With a session cache, a client tries to resume a session that the
	// previous authorities accepted.
	sessions := map[*tls.Certificate]tls.ClientSessionCache{&ofFirst: tls.NewLRUClientSessionCache(0), &ofSecond: tls.NewLRUClientSessionCache(0)}
	accepts := func(shown *tls.Certificate) bool {
		transport := server.client()
		transport.TLSClientConfig.ClientSessionCache = sessions[shown]
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return shown, nil }
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/healthz", http.NoBody)
		require.NoError(t, err)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return false
		}
		require.Equal(t, 2, resp.ProtoMajor)
		_, err = io.Copy(io.Discard, resp.Body) // reading the whole body also reads the session ticket
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return true
	}
	require.True(t, accepts(&ofFirst))
	require.False(t, accepts(&ofSecond))
	for _, text := range []string{"no certificate", ""} {
		require.NoError(t, os.WriteFile(cfg.TLS.ClientCA, []byte(text), 0o600))
		require.True(t, accepts(&ofFirst), "%q", text)
	}
	require.NoError(t, os.Remove(cfg.TLS.ClientCA))
	require.True(t, accepts(&ofFirst))
	second.writeAuthority(t, cfg.TLS.ClientCA)
	require.False(t, accepts(&ofFirst))
	require.True(t, accepts(&ofSecond))
	require.NoError(t, stop())
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("were not read again")), log.String())
}

func TestTLS_AWaitingPeekKeepsTheTLSStateOfItsConnection(t *testing.T) {
	ca := newAuthority(t)
	cfg := settings("")
	cfg.TLS = serverFiles(t, ca)
	seen := make(chan *tls.ConnectionState, 3)
	n, stop := start(t, cfg, node.Options{WrapHandler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			seen <- r.TLS
		})
	}})
	transport := ca.client()
	transport.ForceAttemptHTTP2, transport.Protocols = false, new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	resp := getOver(t, transport, n.URL()+"/v1/peek?wait=10ms")
	require.Equal(t, 204, resp.StatusCode)
	require.NotNil(t, <-seen, "before it waited")
	require.NotNil(t, <-seen, "when it continued")
	require.NoError(t, stop())
}

func TestTLS_FileWithoutAnAuthorityEndsTheStart(t *testing.T) {
	cfg := settings("")
	cfg.TLS = serverFiles(t, newAuthority(t))
	cfg.TLS.ClientCA = cfg.TLS.Key
	_, err := node.Open(t.Context(), cfg, node.Options{})
	require.ErrorContains(t, err, "has no certificate; tls.client-ca needs a PEM file")
	cfg.TLS.ClientCA = filepath.Join(t.TempDir(), "none")
	_, err = node.Open(t.Context(), cfg, node.Options{})
	require.ErrorContains(t, err, "tls.client-ca")
}

func (ca *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}
