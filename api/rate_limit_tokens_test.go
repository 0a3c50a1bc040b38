package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// stopClock stops the clock of a server.
func stopClock(o *api.Options, _ *hub.Options) {
	o.Clock = func() time.Time { return time.Unix(1_700_000_000, 0) }
}

func TestFailedTokens_StopTheVerificationOfNewOnesFromTheirAddress(t *testing.T) {
	f := serveTokens(t, stopClock, func(o *api.Options, _ *hub.Options) { o.Limits.FailedTokens = 3 })
	f.do("GET", "/v1/peek", "").wants(204)
	expired := "Bearer " + f.tokens.issuer.Token(identitytest.Claims{"actor": actor, "exp": time.Now().Add(-time.Hour).Unix()})
	for range 3 {
		f.do("GET", "/v1/peek", "", "Authorization", expired).problem(401, "invalid-token")
	}
	refused := f.do("GET", "/v1/peek", "", "Authorization", expired)
	require.Equal(t, "1", refused.header.Get("Retry-After"))
	refused.problem(429, "too-many-requests")
	other := "Bearer " + f.tokens.issuer.Actor("other")
	f.do("GET", "/v1/peek", "", "Authorization", other).problem(429, "too-many-requests")
	f.do("GET", "/v1/peek", "").wants(204) // the server has already verified this token
	f.do("GET", "/healthz", "", "Authorization", "").wants(200)
}

// A request may name any actor. It nevertheless uses the bucket of its token's client or, without a
// token, of its address.
func TestRequests_CountForTheClientOfTheToken(t *testing.T) {
	f := serveTokens(t, stopClock, func(o *api.Options, _ *hub.Options) { o.Limits.Requests = 2 })
	for range 5 {
		f.do("GET", "/v1/peek", "", "Authorization", "", "X-Actor-Id", actor).problem(401, "invalid-token")
	}
	f.do("GET", "/v1/peek", "").wants(204)
	f.do("GET", "/v1/peek", "").wants(204)
	f.do("GET", "/v1/peek", "").problem(429, "too-many-requests")
	other := "Bearer " + f.tokens.issuer.Token(identitytest.Claims{"azp": "other", "roles": []string{"actor"}, "actor": actor})
	f.do("GET", "/v1/peek", "", "Authorization", other).wants(204)
}

func TestSubscribingToObjects_NeedsTheRoleOfOperators(t *testing.T) {
	f := serveTokens(t, withSubscriptions(t, subscribe.Options{HasObjects: true}))
	const body = `{"topic":"object-changed","callback_url":"https://example.org/hook"}`
	f.do("POST", "/v1/subscriptions", body, "Authorization", "Bearer "+f.tokens.issuer.Actor("a")).problem(403, "missing-right")
	both := f.tokens.issuer.Token(identitytest.Claims{"roles": []string{"actor", "operator.read"}, "actor": "a"})
	f.do("POST", "/v1/subscriptions", body, "Authorization", "Bearer "+both).wants(201)
}
