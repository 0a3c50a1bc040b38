package demo

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cmd/devissuer"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// A tokens creates tokens for the demo's clients. Its issuer runs in the same
// process as the hub.
type tokens struct {
	issuer  *devissuer.Issuer
	origins []string

	mu      sync.Mutex
	byActor map[string]string
}

// issueTokens starts an issuer, which runs until stop is called. It configures
// the hub to accept only tokens of this issuer.
func issueTokens(ctx context.Context, cfg *config.Config) (t *tokens, stop func(), err error) {
	issuer, err := devissuer.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	cfg.OIDC.Issuers, cfg.OIDC.Audiences = []string{issuer.URL}, []string{devissuer.Audience}
	t = &tokens{issuer: issuer, byActor: make(map[string]string)}
	for _, origin := range cfg.Groups().Origins() {
		t.origins = append(t.origins, origin.String())
	}
	issuing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { _ = issuer.Serve(issuing) }) // if the issuer fails, the hub answers 503
	return t, func() {
		cancel()
		running.Wait()
	}, nil
}

// tokenOf returns an actor's token. For "", it returns the token of the domains
// and operators. A token is valid for an hour; the demo takes only minutes.
func (t *tokens) tokenOf(actor string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token, ok := t.byActor[actor]; ok {
		return token
	}
	claims := devissuer.Claims{Subject: "demo", Expires: time.Now().Add(time.Hour)}
	if actor != "" {
		claims.Actors, claims.Roles = []string{actor}, []string{"actor"}
	} else {
		claims.Roles = append(claims.Roles, "operator")
		for _, origin := range t.origins {
			claims.Roles = append(claims.Roles, "domain:"+origin)
		}
	}
	token, err := t.issuer.Sign(claims)
	if err != nil {
		return "" // the hub rejects a request without a token
	}
	t.byActor[actor] = token
	return token
}
