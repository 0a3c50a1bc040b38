// Package identitytest provides an issuer of tokens on loopback, for tests.
package identitytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Audience is the audience of the tokens of an Issuer.
const Audience = "api://messagehub"

// An Issuer signs tokens. It also serves its discovery document and its keys.
type Issuer struct {
	URL string
	t   testing.TB

	mu      sync.Mutex
	keys    []jose.JSONWebKey // private keys; the last key signs tokens
	made    int               // number of generated keys
	fetches int               // number of requests for the public keys
	answer  http.HandlerFunc  // handles all requests instead of the issuer, unless it is nil
}

// Start starts an issuer, which stops at the end of the test.
func Start(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.URL = server.URL
	i.Rotate()
	return i
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	answer := i.answer
	set := jose.JSONWebKeySet{}
	for _, k := range i.keys {
		set.Keys = append(set.Keys, k.Public())
	}
	if r.URL.Path == "/keys" {
		i.fetches++
	}
	i.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path == "/keys":
		_ = json.NewEncoder(w).Encode(set)
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	default:
		http.NotFound(w, r)
	}
}

// Break makes answer handle all requests instead of the issuer. If answer is nil, the issuer works
// again.
func (i *Issuer) Break(answer http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = answer
}

// Rotate makes the issuer sign with a new key, and withdraws the previous keys.
func (i *Issuer) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.Use(key, string(jose.ES256))
}

// Use makes the issuer sign with the given key, and withdraws all other keys.
func (i *Issuer) Use(key crypto.Signer, algorithm string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made++
	i.keys = []jose.JSONWebKey{{Key: key, KeyID: "key-" + strconv.Itoa(i.made), Algorithm: algorithm, Use: "sig"}}
}

// Fetches returns the number of requests for the keys.
func (i *Issuer) Fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// Key returns the private key that signs tokens.
func (i *Issuer) Key() jose.JSONWebKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// Claims are the claims of a token.
type Claims map[string]any

// Claims returns the claims of a token that is valid for an hour. The claims in more are added or
// replace the defaults; a nil value removes a claim.
func (i *Issuer) Claims(more Claims) Claims {
	now := time.Now()
	claims := Claims{"iss": i.URL, "aud": Audience, "sub": "subject", "azp": "client", "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, more)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// Token returns a signed token with the claims that [Issuer.Claims] returns.
func (i *Issuer) Token(more Claims) string { return i.Sign(i.Key(), i.Claims(more), nil) }

// Actor returns a token with the role actor for the actor called id.
func (i *Issuer) Actor(id string) string {
	return i.Token(Claims{"roles": []string{"actor"}, "actor": id})
}

// Role returns a token with the given roles.
func (i *Issuer) Role(roles ...string) string { return i.Token(Claims{"roles": roles}) }

// Sign returns a token with claims, signed with key. The token's header contains alg, kid and the
// members of header.
func (i *Issuer) Sign(key jose.JSONWebKey, claims any, header map[jose.HeaderKey]any) string {
	i.t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, &jose.SignerOptions{ExtraHeaders: header})
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		i.t.Fatal(err)
	}
	raw, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return raw
}
