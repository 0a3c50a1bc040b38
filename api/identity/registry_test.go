package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/domain"
)

// newCertificate returns a client certificate for the DNS name of an actor, which expires at end.
func newCertificate(t *testing.T, name string, end time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: end,
		DNSNames: []string{name}, URIs: []*url.URL{{Scheme: "urn", Opaque: "actor:" + name}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert
}

// newTLSState returns the TLS state of a connection with a client certificate. isVerified reports
// whether the certificate was verified.
func newTLSState(cert *x509.Certificate, isVerified bool) *tls.ConnectionState {
	state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	if isVerified {
		state.VerifiedChains = [][]*x509.Certificate{{cert}}
	}
	return state
}

// authenticateOverTLS authenticates a request over TLS. If token is "", the request contains no
// token.
func (f *tokenFixture) authenticateOverTLS(token string, state *tls.ConnectionState) (*identity.Principal, error) {
	r := request(f.t, "/")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.TLS = state
	return f.auth.Authenticate(r)
}

func actorID(t *testing.T, text string) domain.ActorID {
	t.Helper()
	id, err := domain.ParseActorID(text)
	require.NoError(t, err)
	return id
}

func TestToken_BoundToACertificateRequiresTheCertificate(t *testing.T) {
	f := newFixture(t)
	cert := newCertificate(t, "a.example", time.Now().Add(time.Hour))
	sum := sha256.Sum256(cert.Raw)
	token := f.issuer.Token(identitytest.Claims{"cnf": map[string]string{"x5t#S256": base64.RawURLEncoding.EncodeToString(sum[:])}})
	_, err := f.authenticateOverTLS(token, newTLSState(cert, true))
	require.NoError(t, err)
	for name, state := range map[string]*tls.ConnectionState{
		"no TLS": nil, "no certificate": {}, "one that is not verified": newTLSState(cert, false),
		"another one": newTLSState(newCertificate(t, "a.example", time.Now().Add(time.Hour)), true),
	} {
		_, err := f.authenticateOverTLS(token, state)
		require.ErrorContains(t, err, "client certificate", name)
	}
	f.advance(2 * time.Hour)
	_, err = f.authenticateOverTLS(f.issuer.Token(identitytest.Claims{"exp": f.now.Add(time.Hour).Unix()}), newTLSState(cert, true))
	require.ErrorContains(t, err, "has expired", "a certificate that expires while its connection is open")
}

func TestRegistry_BindsClientsAndCertificates(t *testing.T) {
	byName, byHash, other := newCertificate(t, "b.example", time.Now().Add(time.Hour)), newCertificate(t, "c.example", time.Now().Add(time.Hour)), newCertificate(t, "d.example", time.Now().Add(time.Hour))
	sum := sha256.Sum256(byHash.Raw)
	a, b, c := actorID(t, "a"), actorID(t, "b"), actorID(t, "c")
	var registry *identity.Registry
	f := newFixture(t, func(o *identity.Options) { o.Registry = func() *identity.Registry { return registry } })
	registry = identity.NewRegistry([]identity.Entry{
		{Client: "client", Tenant: "ours", Issuer: f.issuer.URL, Actor: a},
		{Client: "bound", CertificateName: "b.example", Actor: b},
		{CertificateSHA256: hex.EncodeToString(sum[:]), Actor: c},
		{CertificateName: "urn:actor:d.example", Actor: a},
		{CertificateName: "urn:actor:d.example", Actor: b},
	})
	actors := func(token string, cert *x509.Certificate) (found []string) {
		var state *tls.ConnectionState
		if cert != nil {
			state = newTLSState(cert, true)
		}
		p, err := f.authenticateOverTLS(token, state)
		if err != nil {
			return []string{err.Error()[:len("The request shows no token")]}
		}
		for _, g := range p.Grants() {
			found = append(found, g.Actor.String())
		}
		return found
	}
	unknown := []string{"The request shows no token"}
	require.Equal(t, []string{"a"}, actors(f.issuer.Token(identitytest.Claims{"tid": "ours"}), nil))
	require.Empty(t, actors(f.issuer.Token(identitytest.Claims{"tid": "theirs"}), nil))
	require.Empty(t, actors(f.issuer.Token(identitytest.Claims{"azp": "bound"}), nil), "its certificate is missing")
	require.Empty(t, actors(f.issuer.Token(identitytest.Claims{"azp": "bound"}), other))
	require.Equal(t, []string{"b"}, actors(f.issuer.Token(identitytest.Claims{"azp": "bound"}), byName))
	require.Equal(t, []string{"c"}, actors("", byHash), "a certificate needs no token")
	require.Equal(t, []string{"a", "b"}, actors("", other))
	require.Equal(t, unknown, actors("", byName), "that one needs its token")

	registry = identity.NewRegistry(nil)
	require.Equal(t, unknown, actors("", byHash), "revoked while its connection is open")
	require.Empty(t, actors(f.issuer.Token(identitytest.Claims{"tid": "ours"}), nil))
}

func TestRegistry_AddsGroupsOfOneActor(t *testing.T) {
	timeseries, err := domain.ParseGroup("timeseries")
	require.NoError(t, err)
	masterdata, err := domain.ParseGroup("masterdata")
	require.NoError(t, err)
	entries := []identity.Entry{
		{Client: "client", Actor: actorID(t, "a"), Groups: []domain.Group{timeseries}},
		{Client: "client", Actor: actorID(t, "a"), Groups: []domain.Group{masterdata}},
		{Client: "all", Actor: actorID(t, "a")},
		{Client: "all", Actor: actorID(t, "a"), Groups: []domain.Group{masterdata}},
	}
	f := newFixture(t, func(o *identity.Options) {
		o.Registry = func() *identity.Registry { return identity.NewRegistry(entries) }
	})
	p, err := f.authenticate(f.issuer.Token(nil))
	require.NoError(t, err)
	require.Equal(t, []identity.Grant{{Actor: actorID(t, "a"), Groups: []domain.Group{timeseries, masterdata}}}, p.Grants())
	p, err = f.authenticate(f.issuer.Token(identitytest.Claims{"azp": "all"}))
	require.NoError(t, err)
	require.Equal(t, []identity.Grant{{Actor: actorID(t, "a")}}, p.Grants())
}
