package simulate

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A tokenIntruder sends invalid tokens. None of its requests may have an effect.
type tokenIntruder struct {
	baseClient
	issuer *tokenIssuer
}

// strangerName is the actor of the valid tokens of an intruder.
const strangerName = "stranger"

func (sim *simulation) newTokenIntruder() *tokenIntruder {
	x := &tokenIntruder{baseClient: sim.newClient("intruder", 440), issuer: sim.env.issuer}
	x.address = "192.0.2.66:1" // a different address, so that the intruder's failures do not delay other clients
	return x
}

// runUntil makes several requests. It returns early if finish is closed.
func (x *tokenIntruder) runUntil(finish <-chan struct{}) {
	for range 3 + x.rng.IntN(5) {
		if !x.pause(time.Duration(1+x.rng.IntN(6000)) * time.Millisecond) {
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		x.makeRequest()
	}
}

// makeRequest sends one request, or two requests with the same token.
func (x *tokenIntruder) makeRequest() {
	now, victim := time.Now(), actorName(x.rng.IntN(x.sim.plan.recipients))
	actor := tokenClaims{"roles": []string{"actor"}, "actor": victim}
	with := func(name string, value any) tokenClaims {
		return tokenClaims{"roles": actor["roles"], "actor": victim, name: value}
	}
	switch x.rng.IntN(7) {
	case 0:
		x.peekRefused("a token for another service", x.issuer.signClaims(with("aud", "another-service")).raw, victim, http.StatusUnauthorized)
	case 1:
		x.peekRefused("an expired token", x.issuer.signClaims(with("exp", now.Add(-time.Second).Unix())).raw, victim, http.StatusUnauthorized)
	case 2:
		x.peekRefused("a token of another actor", x.issuer.signClaims(tokenClaims{"roles": []string{"actor"}, "actor": strangerName}).raw, victim, http.StatusForbidden)
	case 3:
		key := newSigningKey(x.issuer.signClaims(nil).key)
		x.peekRefused("a forged token", signToken(key, tokenClaims{"iss": issuerURL, "aud": hubAudience, "roles": actor["roles"], "actor": victim, "exp": now.Add(tokenLife).Unix()}), victim, http.StatusUnauthorized)
	case 4:
		x.sendRefused(victim)
	case 5:
		x.useAfterExpiry()
	case 6:
		x.peekRefused("a header without a token", "", victim, http.StatusUnauthorized)
	}
}

// peekRefused sends a Peek that the hub must refuse.
func (x *tokenIntruder) peekRefused(what, token, victim string, want int) {
	header := []string{"X-Actor-Id", victim, "Authorization", "Bearer " + token}
	if token == "" {
		header[3] = "none"
	}
	if r, err := x.call(x.sim.ctx, http.MethodGet, "/v1/peek", nil, header...); err == nil {
		x.checkRefusal(what, r, want)
	}
}

// sendRefused sends an event with a token for a different origin.
func (x *tokenIntruder) sendRefused(victim string) {
	token := x.issuer.signClaims(tokenClaims{"roles": []string{"domain:" + domain.TimeSeries.String()}}).raw
	e := sentData{
		ID: x.newID().String(), Recipient: victim, Origin: domain.Charges.String(), ContentType: "type-a", DocumentType: "RSM012", Weight: 1,
	}
	r, err := x.call(x.sim.ctx, http.MethodPost, "/v1/data-available", encodeEvents([]sentData{e}), "Content-Type", "application/json", "Authorization", "Bearer "+token)
	if err == nil {
		x.checkRefusal("an event of another domain", r, http.StatusForbidden)
	}
}

// useAfterExpiry uses a token while it is valid, so that hubs cache it, and again after it has expired.
func (x *tokenIntruder) useAfterExpiry() {
	const life = 20 * time.Second
	token := x.issuer.signClaims(tokenClaims{"roles": []string{"actor"}, "actor": strangerName, "exp": time.Now().Add(life).Unix()}).raw
	for range 3 {
		r, err := x.call(x.sim.ctx, http.MethodGet, "/v1/peek", nil, "Authorization", "Bearer "+token)
		if err == nil && r.status == http.StatusOK {
			x.sim.Fail(fmt.Errorf("an actor without events received %s", r.body))
		}
	}
	if !x.pause(life) {
		return
	}
	for range 3 {
		r, err := x.call(x.sim.ctx, http.MethodGet, "/v1/peek", nil, "Authorization", "Bearer "+token)
		if err == nil {
			x.checkRefusal("a token that has expired meanwhile", r, http.StatusUnauthorized)
		}
	}
}

// checkRefusal fails the simulation if the response has a status other than want. It accepts a response that says that
// the hub is overloaded or unavailable.
func (x *tokenIntruder) checkRefusal(what string, r *hubReply, want int) {
	if !slices.Contains([]int{want, http.StatusTooManyRequests, http.StatusServiceUnavailable}, r.status) {
		x.sim.Fail(fmt.Errorf("a request with %s returned %d %s", what, r.status, r.body))
	}
	if r.status == want {
		x.sim.MarkReached("a request was refused because of its token")
	}
}
