package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// clientCertificate returns a certificate for name, and a pool with the authority that issued it.
func clientCertificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	authorities := x509.NewCertPool()
	authorities.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authorities
}

// A Peek has waited on a TLS connection. Further requests on this connection still have the
// client's certificate.
func TestPoll_KeepsTheClientCertificateOfItsConnection(t *testing.T) {
	cert, authorities := clientCertificate(t, "actor.example")
	id5790, err := domain.ParseActorID(actor)
	require.NoError(t, err)
	registry := identity.NewRegistry([]identity.Entry{{CertificateName: "actor.example", Actor: id5790}})
	issuer, metrics := identitytest.Start(t), prometheus.NewRegistry()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	f := newFixture(t, func(o *api.Options, _ *hub.Options) {
		o.Registerer = metrics
		o.Identity = identity.New(identity.Options{
			Issuers: []string{issuer.URL}, Audiences: []string{identitytest.Audience}, Client: http.DefaultClient,
			Registry: func() *identity.Registry { return registry },
		})
	})
	server := httptest.NewUnstartedServer(f.server.Handler())
	server.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authorities, MinVersion: tls.VersionTLS12}
	polls := f.server.ParkPolls(server.Config)
	server.StartTLS()
	t.Cleanup(server.Close)
	var resuming sync.WaitGroup
	resuming.Go(func() { _ = server.Config.Serve(polls) })
	t.Cleanup(func() {
		_ = polls.Close()
		resuming.Wait()
	})

	client := func(certificates ...tls.Certificate) *http.Client {
		transport := server.Client().Transport.(*http.Transport).Clone()
		transport.TLSClientConfig.Certificates = certificates
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	send := func(c *http.Client, method, path, token, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := c.Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	own, other := client(cert), client()
	require.Equal(t, http.StatusUnauthorized, send(other, http.MethodGet, "/v1/peek", "", ""))
	status := make(chan int)
	go func() { status <- send(own, http.MethodGet, "/v1/peek?wait=60s", "", "") }()
	f.awaitWaiting(metrics)
	require.Equal(t, http.StatusAccepted, send(other, http.MethodPost, "/v1/data-available", issuer.Role("domain:TimeSeries"), array(newEvent(1))))
	require.Equal(t, http.StatusOK, <-status, "the Peek that waited")
	require.Equal(t, http.StatusOK, send(own, http.MethodGet, "/v1/queues", "", ""), "the next request of its connection")
}

// awaitWaiting waits until a Peek is waiting for data.
func (f *hubFixture) awaitWaiting(metrics *prometheus.Registry) {
	f.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		families, err := metrics.Gather()
		require.NoError(f.t, err)
		for _, family := range families {
			if family.GetName() == "messagehub_http_peeks_waiting" && family.GetMetric()[0].GetGauge().GetValue() == 1 {
				return
			}
		}
	}
	f.t.Fatal("no Peek waits")
}
