package identity

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// Options are the options of an Authenticator. Issuers, Audiences and Client are required.
type Options struct {
	Issuers    []string
	Audiences  []string         // accepted audiences; a token must contain at least one
	Tenants    []string         // accepted tenants; if empty, the tenant is not checked
	RolesClaim string           // default: roles
	ActorClaim string           // default: actor
	Registry   func() *Registry // returns the current registry, for each request; default: an empty registry
	Client     Doer
	Clock      func() time.Time // default: time.Now
	Logger     *slog.Logger     // default: discards
}

// An Authenticator authenticates the senders of requests. It is safe for concurrent use.
type Authenticator struct {
	opts    Options
	issuers map[string]*keySet
	memory  *tokenCache
}

// New returns an Authenticator, without connecting to an issuer.
func New(opts Options) *Authenticator {
	if opts.RolesClaim == "" {
		opts.RolesClaim = "roles"
	}
	if opts.ActorClaim == "" {
		opts.ActorClaim = "actor"
	}
	if opts.Registry == nil {
		empty := NewRegistry(nil)
		opts.Registry = func() *Registry { return empty }
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Authenticator{opts: opts, issuers: make(map[string]*keySet), memory: newTokenCache(maxRemembered)}
	for _, issuer := range opts.Issuers {
		a.issuers[issuer] = newKeySet(issuer, func(ctx context.Context) ([]jose.JSONWebKey, error) {
			return fetchKeys(ctx, opts.Client, issuer)
		}, opts.Clock, opts.Logger)
	}
	return a
}

// Run periodically fetches the keys of all issuers until ctx ends, so that requests rarely wait for
// keys.
func (a *Authenticator) Run(ctx context.Context) {
	var issuers sync.WaitGroup
	for _, keys := range a.issuers {
		issuers.Go(func() { keys.runRefresh(ctx) })
	}
	issuers.Wait()
}

func (s *keySet) runRefresh(ctx context.Context) {
	for {
		_ = s.refreshKeys(ctx) // refreshKeys fails only if ctx ends
		pause := refreshEvery
		if s.isUnreachable() {
			pause = fetchPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// maxToken is the maximum size of a token in bytes.
const maxToken = 16 << 10

// Authenticate returns the sender of a request. It fails with an [Error] if the
// sender cannot be identified.
func (a *Authenticator) Authenticate(r *http.Request) (*Principal, error) {
	raw, err := Bearer(r)
	if err != nil {
		return nil, err
	}
	now := a.opts.Clock()
	cert, err := clientCertificate(r, now)
	if err != nil {
		return nil, err
	}
	if raw == "" {
		return a.principalOfCertificate(cert)
	}
	t, err := a.resolveToken(r.Context(), raw, now)
	if err != nil {
		return nil, err
	}
	if t.certificate != "" && (cert == nil || thumbprint(cert) != t.certificate) {
		return nil, errCertificate
	}
	p := &Principal{Issuer: t.issuer, Subject: t.subject, Client: t.client, Tenant: t.tenant, roles: t.roles, origins: t.origins}
	for _, actor := range t.actors {
		p.addGrant(Grant{Actor: actor})
	}
	for _, grant := range a.opts.Registry().grantsOfToken(t, cert) {
		p.addGrant(grant)
	}
	return p, nil
}

// principalOfCertificate returns the principal of a request that contains a client certificate and
// no token. The certificate must be in the registry.
func (a *Authenticator) principalOfCertificate(cert *x509.Certificate) (*Principal, error) {
	if cert == nil {
		return nil, errMissing
	}
	p := &Principal{Subject: "certificate " + fingerprint(cert), roles: []Role{RoleActor}}
	for _, grant := range a.opts.Registry().grantsOfCertificate(cert) {
		p.addGrant(grant)
	}
	if len(p.grants) == 0 {
		return nil, errMissing
	}
	return p, nil
}

// Bearer returns the bearer token of a request, or "" if the request contains no token.
func Bearer(r *http.Request) (string, error) {
	values := r.Header["Authorization"]
	switch {
	case strings.Contains(r.URL.RawQuery, "access_token="):
		return "", errInQuery
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", errTwice
	}
	scheme, raw, _ := strings.Cut(values[0], " ")
	if raw = strings.TrimSpace(raw); !strings.EqualFold(scheme, "Bearer") || raw == "" {
		return "", errScheme
	}
	return raw, nil
}

// IsSigned reports whether a token has the format of a signed token: three parts separated by dots.
func IsSigned(raw string) bool { return strings.Count(raw, ".") == 2 }

// clientCertificate returns the client certificate of a request, or nil if none exists. The
// certificate was verified when the connection was opened, perhaps long ago, so clientCertificate
// checks its validity period again.
func clientCertificate(r *http.Request, now time.Time) (*x509.Certificate, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil, nil
	}
	cert := r.TLS.VerifiedChains[0][0]
	if now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return nil, errStaleCert
	}
	return cert, nil
}

// Remembers reports whether the token of a request was verified before and is cached. It also
// returns true for a request without a token.
func (a *Authenticator) Remembers(r *http.Request) bool {
	raw, err := Bearer(r)
	return err == nil && (raw == "" || len(raw) <= maxToken && a.memory.findToken(sha256.Sum256([]byte(raw))) != nil)
}

// resolveToken returns the claims of a token, either from the cache or by verifying the token.
func (a *Authenticator) resolveToken(ctx context.Context, raw string, now time.Time) (*verifiedToken, error) {
	if len(raw) > maxToken {
		return nil, errTooLong
	}
	key := sha256.Sum256([]byte(raw))
	if t := a.memory.findToken(key); t != nil && a.issuers[t.issuer].isCurrent(t.generation) {
		if !now.Before(t.expires) {
			return nil, expiredError(now)
		}
		return t, nil
	}
	t, err := a.verifyToken(ctx, raw, now)
	if err != nil {
		return nil, err
	}
	a.memory.addToken(key, t)
	return t, nil
}

// verifyToken verifies a token and returns its claims.
func (a *Authenticator) verifyToken(ctx context.Context, raw string, now time.Time) (*verifiedToken, error) {
	unverified, err := readUnverified(raw)
	if err != nil {
		return nil, err
	}
	keys := a.issuers[unverified.Issuer]
	if keys == nil {
		return nil, errIssuer
	}
	signed := &signature{keys: keys}
	verifier := oidc.NewVerifier(unverified.Issuer, signed, &oidc.Config{
		SupportedSigningAlgs: algorithmNames, SkipClientIDCheck: true, // the library accepts only one audience, but a hub may have several
		SkipExpiryCheck: true, // readClaims checks the expiry instead, with less tolerance
	})
	found, err := verifier.Verify(ctx, raw)
	switch {
	case signed.err != nil:
		return nil, signed.err
	case err != nil && signed.payload == nil:
		return nil, errMalformed
	case err != nil:
		return nil, errClaims
	case !slices.ContainsFunc(found.Audience, func(audience string) bool { return slices.Contains(a.opts.Audiences, audience) }):
		return nil, errAudience
	}
	t, err := a.readClaims(signed.payload, now)
	if err != nil {
		return nil, err
	}
	if len(a.opts.Tenants) > 0 && !slices.Contains(a.opts.Tenants, t.tenant) {
		return nil, errTenant
	}
	t.issuer, t.generation = unverified.Issuer, signed.generation
	return t, nil
}

var algorithmNames = []string{string(jose.RS256), string(jose.PS256), string(jose.ES256)}

// A signature implements oidc.KeySet for one verification. It stores the error of the verification,
// of which the library returns only the text.
type signature struct {
	keys *keySet

	payload    []byte
	generation int
	err        error
}

// VerifySignature implements oidc.KeySet.
func (s *signature) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	s.payload, s.generation, s.err = s.keys.verifySignature(ctx, raw)
	return s.payload, s.err
}

// unverified contains claims of a token that is not yet verified.
type unverified struct {
	Issuer string `json:"iss"`
}

// readUnverified returns claims of a token without verifying it.
func readUnverified(raw string) (u unverified, err error) {
	if !IsSigned(raw) {
		return u, errMalformed
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(raw, ".")[1])
	if err != nil || json.Unmarshal(payload, &u) != nil {
		return u, errMalformed
	}
	return u, nil
}
