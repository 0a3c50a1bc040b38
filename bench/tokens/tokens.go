// Package tokens signs valid tokens and forged tokens for the clients of a measured hub.
package tokens

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/messagehub/messagehub/cmd/devissuer"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// An Issuer signs tokens, and serves its keys on a loopback port until Stop.
type Issuer struct {
	*devissuer.Issuer
	end     context.CancelFunc
	serving sync.WaitGroup
	err     error
}

// Start starts an issuer. The caller calls Stop.
func Start(ctx context.Context) (*Issuer, error) {
	own, err := devissuer.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	i := &Issuer{Issuer: own, end: end}
	i.serving.Go(func() { i.err = own.Serve(serving) })
	return i, nil
}

// Stop closes the listener of the issuer. It may be called more than once; the issuer can
// still sign tokens.
func (i *Issuer) Stop() error {
	i.end()
	i.serving.Wait()
	return i.err
}

// Trust configures a hub to accept only tokens of the issuer.
func (i *Issuer) Trust(c *config.Config) {
	c.OIDC.Issuers, c.OIDC.Audiences = []string{i.URL}, []string{devissuer.Audience}
}

// Actor returns a token of an actor that expires at ends.
func (i *Issuer) Actor(id string, ends time.Time) (string, error) {
	return i.Sign(actorClaims(id, ends))
}

func actorClaims(id string, ends time.Time) devissuer.Claims {
	return devissuer.Claims{Subject: id, Actors: []string{id}, Roles: []string{"actor"}, Expires: ends}
}

// Domain returns a token of a domain that announces events of an origin. It is valid
// for an hour.
func (i *Issuer) Domain(origin string) (string, error) {
	return i.Sign(devissuer.Claims{Subject: origin, Roles: []string{"domain:" + origin}, Expires: time.Now().Add(time.Hour)})
}

// Forged returns n different tokens of an actor, signed with a key that the hub does not know. Half
// of the tokens name an unknown key, and half falsely name the key of i.
func (i *Issuer) Forged(id string, n int) ([]string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	forged, claims := make([]string, n), actorClaims(id, time.Now().Add(time.Hour))
	for at := range forged {
		name := i.Key.KeyID
		if at%2 == 0 {
			name = rand.Text()
		}
		forger := devissuer.Issuer{URL: i.URL, Key: jose.JSONWebKey{Key: key, KeyID: name, Algorithm: string(jose.ES256), Use: "sig"}}
		if forged[at], err = forger.Sign(claims); err != nil {
			return nil, err
		}
	}
	return forged, nil
}
