package node_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// A person is a user of an issuer. The user has a role.
type person struct {
	*mockoidc.MockUser
	role string
}

func (p person) Claims(_ []string, base *mockoidc.IDTokenClaims) (jwt.Claims, error) {
	return jwt.MapClaims{
		"iss": base.Issuer, "aud": base.Audience, "sub": base.Subject, "exp": base.ExpiresAt.Unix(), "nonce": base.Nonce,
		"preferred_username": "kim@example.org", "groups": []string{p.role},
	}, nil
}

// startIssuer starts an OpenID Connect issuer. It returns the issuer, and
// settings of a hub whose operators sign in there.
func startIssuer(t *testing.T) (*mockoidc.MockOIDC, config.Config) {
	t.Helper()
	issuer, err := mockoidc.Run()
	require.NoError(t, err)
	t.Cleanup(func() { _ = issuer.Server.Close() })
	cfg := withOperators()
	cfg.OIDC.Issuers, cfg.OIDC.Audiences, cfg.OIDC.RolesClaim = []string{issuer.Issuer()}, []string{identitytest.Audience}, "groups"
	cfg.Console.ClientID, cfg.Console.ClientSecret = issuer.ClientID, config.Secret(issuer.ClientSecret)
	return issuer, cfg
}

// A pageReader is a browser that does not follow redirects.
type pageReader struct {
	t      *testing.T
	client *http.Client
}

func newPageReader(t *testing.T) *pageReader {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &pageReader{t, &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// send sends a request and returns the response and its body. It sends a POST
// if form is not nil, otherwise a GET.
func (p *pageReader) send(address string, form url.Values) (*http.Response, string) {
	p.t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(form.Encode()))
	require.NoError(p.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	}
	response, err := p.client.Do(r)
	require.NoError(p.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	return response, string(body)
}

// get sends a GET, checks the status of the response, and returns the page.
func (p *pageReader) get(address string, status int) string {
	p.t.Helper()
	response, body := p.send(address, nil)
	require.Equal(p.t, status, response.StatusCode, "%s: %s", address, body)
	return body
}

// signIn signs in at the issuer, follows the redirects, and returns the last
// page.
func (p *pageReader) signIn(hub, next string, status int) string {
	p.t.Helper()
	for address := hub + "/console/sign-in/start?next=" + url.QueryEscape(next); ; {
		response, body := p.send(address, nil)
		if response.StatusCode == http.StatusSeeOther || response.StatusCode == http.StatusFound {
			location, err := response.Location()
			require.NoError(p.t, err)
			address = location.String()
			continue
		}
		require.Equal(p.t, status, response.StatusCode, "%s: %s", address, body)
		return body
	}
}

// fieldOf returns the value of a page's hidden field.
func (p *pageReader) fieldOf(page, name string) string {
	p.t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	require.NotNil(p.t, found, page)
	return strings.NewReplacer("&#34;", `"`, "&amp;", "&", "&#39;", "'").Replace(found[1])
}

func TestConsole_OperatorsSignInAtTheIssuer(t *testing.T) {
	issuer, cfg := startIssuer(t)
	n, _ := start(t, cfg, node.Options{})
	status, _ := call(t, http.MethodGet, n.URL()+"/console/", "", "")
	require.Equal(t, http.StatusNotFound, status, "the console is for operators alone")

	p := newPageReader(t)
	require.Contains(t, p.get(n.AdminURL()+"/console/sign-in", http.StatusOK), "Sign in at 127.0.0.1")
	issuer.QueueUser(person{mockoidc.DefaultUser(), "operator"})
	require.Contains(t, p.signIn(n.AdminURL(), "/console/sample", http.StatusOK), `content="0; url=/console/sample"`)
	page := p.get(n.AdminURL()+"/console/sample", http.StatusOK)
	require.Contains(t, page, "kim@example.org")
	response, _ := p.send(n.AdminURL()+"/console/sample", url.Values{"form-token": {p.fieldOf(page, "form-token")}})
	require.Equal(t, http.StatusSeeOther, response.StatusCode)

	const freeze = "/console/mailboxes/sample-actor/orders/freeze"
	page = p.get(n.AdminURL()+freeze, http.StatusOK)
	response, _ = p.send(n.AdminURL()+freeze, url.Values{
		"form-token": {p.fieldOf(page, "form-token")}, "saw": {p.fieldOf(page, "saw")}, "why": {"a test"}, "typed": {"sample-actor"},
	})
	require.Equal(t, http.StatusSeeOther, response.StatusCode)
	require.Contains(t, p.get(n.AdminURL()+"/console/mailboxes/sample-actor/records", http.StatusOK), mockoidc.DefaultUser().Subject+" (kim@example.org)")

	response, _ = p.send(n.AdminURL()+"/console/sign-out", url.Values{"form-token": {p.fieldOf(page, "form-token")}})
	require.Equal(t, http.StatusSeeOther, response.StatusCode)
	p.get(n.AdminURL()+"/console/", http.StatusSeeOther)
}

func TestConsole_AReaderCannotGiveOrders(t *testing.T) {
	issuer, cfg := startIssuer(t)
	n, _ := start(t, cfg, node.Options{})
	p := newPageReader(t)
	issuer.QueueUser(person{mockoidc.DefaultUser(), "operator.read"})
	p.signIn(n.AdminURL(), "/console/", http.StatusOK)
	require.NotContains(t, p.get(n.AdminURL()+"/console/", http.StatusOK), "Send sample traffic")
	require.Contains(t, p.get(n.AdminURL()+"/console/sample", http.StatusForbidden), "You may look, and not change anything")

	stranger := newPageReader(t)
	issuer.QueueUser(person{mockoidc.DefaultUser(), "actor"})
	require.Contains(t, stranger.signIn(n.AdminURL(), "/console/", http.StatusForbidden), "Your account may not see this console")
	stranger.get(n.AdminURL()+"/console/", http.StatusSeeOther)
}

func TestConsole_AcceptsTokensDuringAnOutageOfTheIssuer(t *testing.T) {
	issuer, cfg := startIssuer(t)
	require.NoError(t, issuer.Server.Close())
	n, _ := start(t, cfg, node.Options{})
	p := newPageReader(t)
	p.signIn(n.AdminURL(), "/console/", http.StatusServiceUnavailable)
	page := p.get(n.AdminURL()+"/console/sign-in", http.StatusOK)
	response, _ := p.send(n.AdminURL()+"/console/sign-in", url.Values{"form-token": {p.fieldOf(page, "form-token")}, "name": {"Kim"}, "token": {adminToken}})
	require.Equal(t, http.StatusSeeOther, response.StatusCode)
	p.get(n.AdminURL()+"/console/", http.StatusOK)
}

func TestConsole_SessionsOfTwoNodesOfAMachineCoexist(t *testing.T) {
	_, cfg := startIssuer(t)
	first, _ := start(t, cfg, node.Options{})
	second, _ := start(t, cfg, node.Options{})
	p := newPageReader(t)
	for _, n := range []*node.Node{first, second} {
		page := p.get(n.AdminURL()+"/console/sign-in", http.StatusOK)
		response, _ := p.send(n.AdminURL()+"/console/sign-in", url.Values{"form-token": {p.fieldOf(page, "form-token")}, "name": {"Kim"}, "token": {adminToken}})
		require.Equal(t, http.StatusSeeOther, response.StatusCode)
	}
	for _, n := range []*node.Node{first, second} {
		require.Contains(t, p.get(n.AdminURL()+"/console/", http.StatusOK), "Kim")
	}
}
