package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/api/identity"
)

// A testPerson is a user of an issuer, with roles.
type testPerson struct {
	*mockoidc.MockUser
	roles []string
}

func (p testPerson) Claims(_ []string, base *mockoidc.IDTokenClaims) (jwt.Claims, error) {
	return jwt.MapClaims{
		"iss": base.Issuer, "aud": base.Audience, "sub": base.Subject, "exp": base.ExpiresAt.Unix(), "nonce": base.Nonce,
		"preferred_username": "kim@example.org", "roles": p.roles,
	}, nil
}

// openWithIssuer starts a hub and an issuer at which a person with roles signs in.
func openWithIssuer(t *testing.T, roles ...string) *browser {
	t.Helper()
	issuer, err := mockoidc.Run()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, issuer.Server.Close()) })
	for range 3 {
		issuer.QueueUser(testPerson{mockoidc.DefaultUser(), roles})
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return open(t, func(o *console.Options, _ *api.Options) {
		o.SignIn = identity.NewCodeFlow(identity.CodeFlowOptions{
			Issuer: issuer.Issuer(), ClientID: issuer.ClientID, ClientSecret: issuer.ClientSecret, Client: &http.Client{Transport: transport},
		})
	})
}

// begin starts a sign-in at the issuer, and returns the path to which the issuer redirects the
// browser.
func (b *browser) begin(next string) (path string) {
	b.t.Helper()
	address := b.get("/console/sign-in/start?next=" + url.QueryEscape(next)).wants(http.StatusSeeOther).header.Get("Location")
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(b.t, err)
	response, err := b.client.Do(request)
	require.NoError(b.t, err)
	defer response.Body.Close()
	back, err := response.Location()
	require.NoError(b.t, err)
	require.Equal(b.t, b.url+"/console/sign-in/callback", back.Scheme+"://"+back.Host+back.Path)
	return back.RequestURI()
}

func TestSignIn_AtAnIssuerLeadsBackToThePage(t *testing.T) {
	b := openWithIssuer(t, "operator")
	require.Contains(t, b.get("/console/sign-in").text(), "Sign in at 127.0.0.1")
	a := b.get(b.begin("/console/mailboxes?state=open")).wants(http.StatusOK)
	require.Contains(t, a.body, `<meta http-equiv="refresh" content="0; url=/console/mailboxes?state=open">`)
	b.get("/console/mailboxes?state=open").wants(http.StatusOK)
	b.save(actor, "TimeSeries", 1)
	b.post(freezePath, filled(b.get(freezePath), freezePath)).wants(http.StatusSeeOther)
	records, err := b.options.Operator.Records(t.Context(), parseActor(t, actor), 1)
	require.NoError(t, err)
	require.Equal(t, mockoidc.DefaultUser().Subject+" (kim@example.org)", records[0].Who)
}

func TestSignIn_OfAReaderShowsNoActions(t *testing.T) {
	b := openWithIssuer(t, "operator.read")
	b.get(b.begin("/console/")).wants(http.StatusOK)
	b.save(actor, "TimeSeries", 1)
	b.get("/console/").wants(http.StatusOK)
	require.NotContains(t, b.get("/console/mailboxes/"+actor).wants(http.StatusOK).text(), "Freeze")
	require.NotContains(t, b.get("/console/").text(), "Send sample traffic")
	token := b.get("/console/sign-out").form("/console/sign-out").Get("form-token")
	for _, path := range console.PathsOf(http.MethodPost) {
		if strings.HasPrefix(path, "/sign-") {
			continue
		}
		a := b.post(b.samplePath(path), url.Values{"form-token": {token}, "why": {"x"}, "typed": {actor}}).wants(http.StatusForbidden)
		require.Contains(t, a.text(), "You may look, and not change anything")
	}
}

func TestSignIn_OfAnAccountWithoutARoleIsRefused(t *testing.T) {
	b := openWithIssuer(t, "actor", "metrics")
	require.Contains(t, b.get(b.begin("/console/")).wants(http.StatusForbidden).text(), "Your account may not see this console")
	b.get("/console/").wants(http.StatusSeeOther)
}

func TestSignIn_AtAnIssuerRequiresItsAttempt(t *testing.T) {
	b := openWithIssuer(t, "operator")
	path := b.begin("/console/")
	other := openWithIssuer(t, "operator")
	other.get(path).wants(http.StatusUnauthorized) // a different browser cannot complete the attempt
	b.get(strings.Replace(path, "state=", "state=x", 1)).wants(http.StatusUnauthorized)
	b.get(path).wants(http.StatusUnauthorized) // the attempt has already ended

	b = openWithIssuer(t, "operator")
	path = b.begin("/console/")
	b.get(path).wants(http.StatusOK)
	b.signOut()
	b.get(path).wants(http.StatusUnauthorized) // the code was already used

	b = openWithIssuer(t, "operator")
	path = b.begin("/console/")
	b.clock.advance(11 * time.Minute)
	b.get(path).wants(http.StatusUnauthorized)
	require.Contains(t, b.get("/console/sign-in/callback?error=access_denied&state=x").wants(http.StatusUnauthorized).text(), "Sign in")
	b.get("/console/").wants(http.StatusSeeOther)
}

func TestSession_OfAnAccountEndsWithinAnHour(t *testing.T) {
	b := openWithIssuer(t, "operator")
	b.get(b.begin("/console/")).wants(http.StatusOK)
	for range 5 {
		b.clock.advance(10 * time.Minute)
		b.get("/console/").wants(http.StatusOK)
	}
	b.clock.advance(10 * time.Minute)
	b.get("/console/").wants(http.StatusSeeOther)
}

func TestSignIn_WithoutAnIssuerNeedsAToken(t *testing.T) {
	b := open(t)
	require.NotContains(t, b.get("/console/sign-in").text(), "Sign in at")
	b.get("/console/sign-in/start").wants(http.StatusNotFound)
	b.get("/console/sign-in/callback?code=x&state=y").wants(http.StatusNotFound)
}

func TestSession_IsNotReplacedByALinkOfAnotherSite(t *testing.T) {
	b := openSignedIn(t)
	fresh := b.newClient()
	signedIn := b.client
	b.client = fresh // browsers do not send the session cookie with a request from another site
	a := b.get("/console/mailboxes?state=open", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate").wants(http.StatusOK)
	require.Empty(t, a.header["Set-Cookie"])
	require.Contains(t, a.body, `content="0; url=/console/mailboxes?state=open"`)
	b.client = signedIn
	b.get("/console/mailboxes?state=open", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate").wants(http.StatusOK)
	require.Empty(t, b.get("/console/missing").header["Set-Cookie"], "a session that was just seen is not renewed")
}
