package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// algorithms are the permitted signature algorithms.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256}

const (
	fetchPause   = 30 * time.Second // minimum time between the starts of two fetches
	fetchTimeout = 10 * time.Second
	refreshEvery = 10 * time.Minute
	keyLifetime  = 24 * time.Hour // time for which keys are used after the last successful fetch
	maxKeys      = 64             // maximum number of keys of an issuer
	minRSABits   = 2048
)

// keySet contains the keys of one issuer.
type keySet struct {
	issuer string
	fetch  func(context.Context) ([]jose.JSONWebKey, error)
	clock  func() time.Time
	log    *slog.Logger

	fetching chan struct{} // contains an element while a fetch is running

	mu         sync.Mutex
	keys       []jose.JSONWebKey
	fetched    time.Time // start time of the last successful fetch; zero before the first one
	tried      time.Time // start time of the last fetch; zero before the first one
	isFailing  bool      // whether the last fetch failed
	generation int       // incremented when a key is withdrawn
}

func newKeySet(issuer string, fetch func(context.Context) ([]jose.JSONWebKey, error), clock func() time.Time, log *slog.Logger) *keySet {
	return &keySet{issuer: issuer, fetch: fetch, clock: clock, log: log, fetching: make(chan struct{}, 1)}
}

// verifySignature returns the payload of a signed token, and the generation of the keys. If the
// token's key is unknown, it fetches the keys.
func (s *keySet) verifySignature(ctx context.Context, raw string) (payload []byte, generation int, err error) {
	jws, err := jose.ParseSignedCompact(raw, algorithms)
	if err != nil || len(jws.Signatures) != 1 {
		return nil, 0, errMalformed
	}
	header := &jws.Signatures[0].Header
	candidates, generation := s.findKeys(header)
	payload, isVerified := tryKeys(jws, candidates)
	if isVerified {
		return payload, generation, nil
	}
	if len(candidates) > 0 && header.KeyID != "" {
		return nil, 0, errSignature // the token was not signed with the issuer's key of this id
	}
	if err := s.refreshKeys(ctx); err != nil {
		return nil, 0, err
	}
	candidates, generation = s.findKeys(header)
	if payload, isVerified = tryKeys(jws, candidates); isVerified {
		return payload, generation, nil
	}
	if s.isUnreachable() {
		return nil, 0, errUnavailable
	}
	return nil, 0, errSignature
}

func tryKeys(jws *jose.JSONWebSignature, keys []jose.JSONWebKey) (payload []byte, isVerified bool) {
	for i := range keys {
		if payload, err := jws.Verify(&keys[i]); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// findKeys returns the keys that may have signed a token with the given header.
func (s *keySet) findKeys(header *jose.Header) (found []jose.JSONWebKey, generation int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock().Sub(s.fetched) >= keyLifetime {
		return nil, s.generation
	}
	for _, k := range s.keys {
		if (header.KeyID == "" || k.KeyID == header.KeyID) && (k.Algorithm == "" || k.Algorithm == header.Algorithm) {
			found = append(found, k)
		}
	}
	return found, s.generation
}

// isCurrent reports whether no key was withdrawn since the given generation.
func (s *keySet) isCurrent(generation int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation == generation
}

// isUnreachable reports whether the last fetch failed.
func (s *keySet) isUnreachable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isFailing
}

// refreshKeys fetches the keys, unless the last fetch began less than fetchPause ago. Concurrent
// requests share one fetch.
func (s *keySet) refreshKeys(ctx context.Context) error {
	select {
	case s.fetching <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.fetching }()
	if !s.mayFetch() {
		return nil
	}
	// Several requests may wait for this fetch, so it must not end when the client of the first
	// request disconnects.
	fetching, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	keys, err := s.fetch(fetching)
	if err == nil && len(keys) == 0 {
		err = errNoKey
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isFailing = err != nil
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "the keys of an issuer cannot be fetched; those fetched before are used for 24 hours",
			slog.String("issuer", s.issuer), slog.Any("error", err))
		return nil
	}
	if slices.ContainsFunc(s.keys, func(k jose.JSONWebKey) bool {
		return !slices.ContainsFunc(keys, func(other jose.JSONWebKey) bool { return isSameKey(&k, &other) })
	}) {
		s.generation++
	}
	s.keys, s.fetched = keys, s.tried
	return nil
}

// mayFetch reports whether fetchPause has passed since the start of the last fetch. If so, it
// records the start of a new fetch.
func (s *keySet) mayFetch() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	if since := now.Sub(s.tried); !s.tried.IsZero() && 0 <= since && since < fetchPause {
		return false
	}
	s.tried = now
	return true
}

// usableKeys returns the keys that may sign tokens, up to maxKeys.
func usableKeys(all []jose.JSONWebKey) []jose.JSONWebKey {
	usable := slices.DeleteFunc(slices.Clone(all), func(k jose.JSONWebKey) bool { return !isUsable(&k) })
	return usable[:min(len(usable), maxKeys)]
}

func isUsable(k *jose.JSONWebKey) bool {
	if k.Use != "" && k.Use != "sig" {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey:
		return key.Curve == elliptic.P256()
	}
	return false
}

func isSameKey(a, b *jose.JSONWebKey) bool {
	key, ok := a.Key.(interface{ Equal(crypto.PublicKey) bool })
	return ok && a.KeyID == b.KeyID && key.Equal(b.Key)
}
