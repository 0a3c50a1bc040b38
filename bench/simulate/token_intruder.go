package simulate

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A tokenIntruder shows tokens that must not count: no request of it may have an effect.
type tokenIntruder struct {
	party
	issuer *tokenIssuer
}

// strangerName is the actor of the tokens that an intruder is granted.
const strangerName = "stranger"

func (w *world) newTokenIntruder() *tokenIntruder {
	x := &tokenIntruder{party: w.newParty("intruder", 440), issuer: w.issuer}
	x.address = "192.0.2.66:1" // so that its failures do not delay the others
	return x
}

// acts makes a few requests, until finish is closed.
func (x *tokenIntruder) acts(finish <-chan struct{}) {
	for range 3 + x.d.n(5) {
		if !x.pause(time.Duration(1+x.d.n(6000)) * time.Millisecond) {
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		x.intrude()
	}
}

// intrude makes one request, or two with the same token.
func (x *tokenIntruder) intrude() {
	now, victim := time.Now(), actorName(x.d.n(x.w.plan.recipients))
	actor := claims{"roles": []string{"actor"}, "actor": victim}
	with := func(name string, value any) claims {
		return claims{"roles": actor["roles"], "actor": victim, name: value}
	}
	switch x.d.n(7) {
	case 0:
		x.peek("a token for another service", x.issuer.sign(with("aud", "another-service")).raw, victim, http.StatusUnauthorized)
	case 1:
		x.peek("an expired token", x.issuer.sign(with("exp", now.Add(-time.Second).Unix())).raw, victim, http.StatusUnauthorized)
	case 2:
		x.peek("a token of another actor", x.issuer.sign(claims{"roles": []string{"actor"}, "actor": strangerName}).raw, victim, http.StatusForbidden)
	case 3:
		key := newSigningKey(x.issuer.sign(nil).key)
		x.peek("a forged token", signToken(key, claims{"iss": issuerURL, "aud": hubAudience, "roles": actor["roles"], "actor": victim, "exp": now.Add(tokenLife).Unix()}), victim, http.StatusUnauthorized)
	case 4:
		x.announce(victim)
	case 5:
		x.useAfterExpiry()
	case 6:
		x.peek("a header without a token", "", victim, http.StatusUnauthorized)
	}
}

// peek fetches as an actor, which has to be refused.
func (x *tokenIntruder) peek(what, token, victim string, want int) {
	header := []string{"X-Actor-Id", victim, "Authorization", "Bearer " + token}
	if token == "" {
		header[3] = "none"
	}
	if r, err := x.call(x.w.ctx, http.MethodGet, "/v1/peek", nil, header...); err == nil {
		x.judge(what, r, want)
	}
}

// announce sends an event of an origin that is not that of its token.
func (x *tokenIntruder) announce(victim string) {
	token := x.issuer.sign(claims{"roles": []string{"domain:" + domain.TimeSeries.String()}}).raw
	e := event{
		ID: x.newID().String(), Recipient: victim, Origin: domain.Charges.String(), ContentType: "type-a", DocumentType: "RSM012", Weight: 1,
	}
	r, err := x.call(x.w.ctx, http.MethodPost, "/v1/data-available", eventsJSON([]event{e}), "Content-Type", "application/json", "Authorization", "Bearer "+token)
	if err == nil {
		x.judge("an event of another domain", r, http.StatusForbidden)
	}
}

// useAfterExpiry shows a token while it counts, so that hubs remember it, and afterwards.
func (x *tokenIntruder) useAfterExpiry() {
	const life = 20 * time.Second
	token := x.issuer.sign(claims{"roles": []string{"actor"}, "actor": strangerName, "exp": time.Now().Add(life).Unix()}).raw
	for range 3 {
		r, err := x.call(x.w.ctx, http.MethodGet, "/v1/peek", nil, "Authorization", "Bearer "+token)
		if err == nil && r.status == http.StatusOK {
			x.w.fail(fmt.Errorf("an actor without events was shown %s", r.body))
		}
	}
	if !x.pause(life) {
		return
	}
	for range 3 {
		r, err := x.call(x.w.ctx, http.MethodGet, "/v1/peek", nil, "Authorization", "Bearer "+token)
		if err == nil {
			x.judge("a token that has expired meanwhile", r, http.StatusUnauthorized)
		}
	}
}

// judge fails the run unless an answer is the refusal that is due, or says that the hub cannot answer.
func (x *tokenIntruder) judge(what string, r *reply, want int) {
	if !slices.Contains([]int{want, http.StatusTooManyRequests, http.StatusServiceUnavailable}, r.status) {
		x.w.fail(fmt.Errorf("a request with %s was answered %d %s", what, r.status, r.body))
	}
	if r.status == want {
		x.w.reached("a request was refused because of its token")
	}
}
