package identity_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/identity"
)

const redirectURL = "http://hub.example/console/sign-in/callback"

// A testPerson is a user of an issuer. It contains the claims of the user's ID token.
type testPerson struct {
	*mockoidc.MockUser
	claims map[string]any
}

func (p testPerson) Claims(_ []string, base *mockoidc.IDTokenClaims) (jwt.Claims, error) {
	all := jwt.MapClaims{
		"iss": base.Issuer, "aud": base.Audience, "sub": base.Subject, "exp": base.ExpiresAt.Unix(), "nonce": base.Nonce,
		"preferred_username": "kim@example.org", "roles": []string{"operator.read", "other"},
	}
	for name, value := range p.claims {
		if value == nil {
			delete(all, name)
			continue
		}
		all[name] = value
	}
	return all, nil
}

// runIssuer starts an issuer whose users have the given claims.
func runIssuer(t *testing.T, claims ...map[string]any) *mockoidc.MockOIDC {
	t.Helper()
	issuer, err := mockoidc.Run()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, issuer.Server.Close()) })
	for _, c := range claims {
		issuer.QueueUser(testPerson{mockoidc.DefaultUser(), c})
	}
	return issuer
}

func newCodeFlow(t *testing.T, issuer *mockoidc.MockOIDC) *identity.CodeFlow {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return identity.NewCodeFlow(identity.CodeFlowOptions{
		Issuer: issuer.Issuer(), ClientID: issuer.ClientID, ClientSecret: issuer.ClientSecret, Client: noRedirects(transport),
	})
}

func noRedirects(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// signIn signs a user in at the issuer. It returns the query with which the issuer redirects the
// browser back.
func signIn(t *testing.T, address string) url.Values {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	response, err := noRedirects(transport).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	back, err := response.Location()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(back.String(), redirectURL))
	return back.Query()
}

func TestCodeFlow_ReturnsTheAccountWithItsRoles(t *testing.T) {
	flow := newCodeFlow(t, runIssuer(t, nil))
	address, attempt, err := flow.Begin(t.Context(), redirectURL)
	require.NoError(t, err)
	require.Contains(t, address, "code_challenge_method=S256")
	account, err := flow.Finish(t.Context(), redirectURL, attempt, signIn(t, address))
	require.NoError(t, err)
	require.Equal(t, "kim@example.org", account.Name)
	require.True(t, account.Principal().Has(identity.RoleOperatorRead))
	require.False(t, account.Principal().Has(identity.RoleOperator))
	require.Equal(t, mockoidc.DefaultUser().Subject, account.Principal().Subject)
}

func TestCodeFlow_RejectsAResponseToAnotherAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		claims map[string]any
		change func(*identity.Attempt, url.Values)
		want   string
	}{
		"state of another browser": {change: func(a *identity.Attempt, _ url.Values) { a.State = "another" }, want: "belongs to another attempt"},
		"no attempt":               {change: func(a *identity.Attempt, q url.Values) { *a = identity.Attempt{}; q.Set("state", "") }, want: "belongs to another attempt"},
		"wrong verifier":           {change: func(a *identity.Attempt, _ url.Values) { a.Verifier = strings.Repeat("x", 43) }, want: "does not accept the code"},
		"wrong nonce":              {change: func(a *identity.Attempt, _ url.Values) { a.Nonce = "another" }, want: "not for this attempt"},
		"no nonce":                 {claims: map[string]any{"nonce": nil}, want: "not for this attempt"},
		"another code":             {change: func(_ *identity.Attempt, q url.Values) { q.Set("code", "another") }, want: "does not accept the code"},
		"no code":                  {change: func(_ *identity.Attempt, q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, want: "did not sign you in"},
		"another audience":         {claims: map[string]any{"aud": "another"}, want: "another audience"},
		"another client":           {claims: map[string]any{"azp": "another"}, want: "another audience"},
		"expired":                  {claims: map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, want: "expired"},
		"another issuer":           {claims: map[string]any{"iss": "https://issuer.example"}, want: "does not trust the issuer"},
		"bound to a certificate":   {claims: map[string]any{"cnf": map[string]string{"x5t#S256": "x"}}, want: "client certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			flow := newCodeFlow(t, runIssuer(t, c.claims))
			address, attempt, err := flow.Begin(t.Context(), redirectURL)
			require.NoError(t, err)
			query := signIn(t, address)
			if c.change != nil {
				c.change(&attempt, query)
			}
			_, err = flow.Finish(t.Context(), redirectURL, attempt, query)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestCodeFlow_FinishesAnAttemptOnce(t *testing.T) {
	flow := newCodeFlow(t, runIssuer(t, nil))
	address, attempt, err := flow.Begin(t.Context(), redirectURL)
	require.NoError(t, err)
	query := signIn(t, address)
	_, err = flow.Finish(t.Context(), redirectURL, attempt, query)
	require.NoError(t, err)
	_, err = flow.Finish(t.Context(), redirectURL, attempt, query)
	require.ErrorContains(t, err, "does not accept the code")
}

func TestCodeFlow_SendsFewRequestsDuringAnOutageOfTheIssuer(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	now := time.Now()
	flow := identity.NewCodeFlow(identity.CodeFlowOptions{Issuer: server.URL, ClientID: "console", Client: server.Client(), Clock: func() time.Time { return now }})
	for range 5 {
		_, _, err := flow.Begin(t.Context(), redirectURL)
		require.ErrorContains(t, err, "cannot reach the issuer")
	}
	require.Equal(t, 1, asked)
	now = now.Add(time.Minute)
	_, _, err := flow.Begin(t.Context(), redirectURL)
	require.Error(t, err)
	require.Equal(t, 2, asked)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	now = now.Add(time.Minute)
	_, _, err = flow.Begin(gone, redirectURL)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCodeFlow_RefusesIssuersThatNameOthers(t *testing.T) {
	for _, document := range []string{
		`{"issuer": "https://another.example", "authorization_endpoint": "https://a.example/", "token_endpoint": "https://a.example/"}`,
		`{"issuer": "URL", "authorization_endpoint": "ftp://a.example/", "token_endpoint": "https://a.example/"}`,
		`{"issuer": "URL", "authorization_endpoint": "https://a.example/"}`,
	} {
		var server *httptest.Server
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.ReplaceAll(document, "URL", server.URL)))
		}))
		flow := identity.NewCodeFlow(identity.CodeFlowOptions{Issuer: server.URL, ClientID: "console", Client: server.Client()})
		_, _, err := flow.Begin(t.Context(), redirectURL)
		require.ErrorContains(t, err, "cannot reach the issuer")
		server.Close()
	}
}
