package tokens_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/bench/tokens"
	"github.com/messagehub/messagehub/cmd/node/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIssuer_SignsValidAndForgedTokens(t *testing.T) {
	issuer, err := tokens.Start(t.Context())
	require.NoError(t, err)
	cfg := config.Default()
	issuer.Trust(&cfg)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	hub := identity.New(identity.Options{Issuers: cfg.OIDC.Issuers, Audiences: cfg.OIDC.Audiences, Client: client})
	authenticate := func(token string) (*identity.Principal, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		return hub.Authenticate(r)
	}
	token, err := issuer.Actor("a", time.Now().Add(time.Hour))
	require.NoError(t, err)
	p, err := authenticate(token)
	require.NoError(t, err)
	require.True(t, p.Has(identity.RoleActor))
	require.Equal(t, "a", p.Grants()[0].Actor.String())

	token, err = issuer.Domain("TimeSeries")
	require.NoError(t, err)
	p, err = authenticate(token)
	require.NoError(t, err)
	require.True(t, p.Has(identity.RoleDomain))

	forged, err := issuer.Forged("a", 4)
	require.NoError(t, err)
	seen := make(map[string]bool)
	for _, token := range forged {
		_, err := authenticate(token)
		var refused *identity.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, identity.Invalid, refused.Kind)
		seen[token] = true
	}
	require.Len(t, seen, 4)
	require.EqualValues(t, 1, issuer.Fetches())
	require.NoError(t, issuer.Stop())
	require.NoError(t, issuer.Stop())
}
