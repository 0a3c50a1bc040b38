package node_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// withTokens returns the settings of a node that accepts the tokens of an issuer.
func withTokens(issuer *identitytest.Issuer) config.Config {
	cfg := settings("")
	cfg.OIDC.Issuers, cfg.OIDC.Audiences = []string{issuer.URL}, []string{identitytest.Audience}
	return cfg
}

// callAs sends a request with a token, "" for none, and returns the answer without its body.
func callAs(t testing.TB, method, url, token string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp
}

func TestNode_AcceptsTokensOfItsIssuer(t *testing.T) {
	issuer := identitytest.Start(t)
	n, _ := start(t, withTokens(issuer), node.Options{})
	require.Equal(t, http.StatusNoContent, callAs(t, http.MethodGet, n.URL()+"/v1/peek", issuer.Actor("a")).StatusCode)

	refused := callAs(t, http.MethodGet, n.URL()+"/v1/peek", "", "X-Actor-Id", "a")
	require.Equal(t, http.StatusUnauthorized, refused.StatusCode, "the header alone proves nothing")
	require.Equal(t, "Bearer", refused.Header.Get("WWW-Authenticate"))

	forged := callAs(t, http.MethodGet, n.URL()+"/v1/peek", identitytest.Start(t).Actor("a"))
	require.Equal(t, http.StatusUnauthorized, forged.StatusCode)
	require.Contains(t, forged.Header.Get("WWW-Authenticate"), `Bearer error="invalid_token"`)
}
