package node_test

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// withTokens returns settings of a node that accepts tokens from issuer.
func withTokens(issuer *identitytest.Issuer) config.Config {
	cfg := settings("")
	cfg.OIDC.Issuers, cfg.OIDC.Audiences = []string{issuer.URL}, []string{identitytest.Audience}
	return cfg
}

// callAs sends a request with a token, unless token is "". It closes the body
// of the response that it returns.
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

// answerOf returns the response's headers and body as one text.
func answerOf(t *testing.T, method, url, body, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text := new(strings.Builder)
	require.NoError(t, resp.Header.Write(text))
	_, err = io.Copy(text, resp.Body)
	require.NoError(t, err)
	return text.String()
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

// withRegistry returns settings of a node that reads the registry of actors
// from a file, and a function that replaces the actors in the file.
func withRegistry(t *testing.T, issuer *identitytest.Issuer, actors string) (config.Config, func(actors string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hub.yaml")
	written := time.Now().Add(-time.Hour)
	write := func(actors string) {
		text := "in-memory: true\nlisten: 127.0.0.1:0\nbus-listen: ''\nblob-listen: ''\nadmin: {token: " + adminToken + "}\n" +
			"oidc: {issuer: ['" + issuer.URL + "'], audience: '" + identitytest.Audience + "'}\nactors: " + actors + "\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		written = written.Add(time.Second)
		require.NoError(t, os.Chtimes(file, written, written))
	}
	write(actors)
	cfg, err := config.Load(config.Inputs{File: file})
	require.NoError(t, err)
	return cfg, write
}

func TestNode_ReadsTheRegistryOfActorsAgain(t *testing.T) {
	issuer := identitytest.Start(t)
	cfg, write := withRegistry(t, issuer, "[{client: billing, actor: a}]")
	var ahead atomic.Int64
	var log safeBuffer
	n, _ := start(t, cfg, node.Options{
		Clock:  func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Logger: slog.New(slog.NewJSONHandler(&log, nil)),
	})
	token := issuer.Token(identitytest.Claims{"azp": "billing", "roles": []string{"actor"}})
	peek := func(headers ...string) int {
		return callAs(t, http.MethodGet, n.URL()+"/v1/peek", token, headers...).StatusCode
	}
	require.Equal(t, http.StatusNoContent, peek("X-Actor-Id", "a"))

	write("[{client: billing, actor: b}]")
	ahead.Add(int64(time.Second))
	require.Equal(t, http.StatusForbidden, peek("X-Actor-Id", "a"), "revoked while the connection is open")
	require.Equal(t, http.StatusNoContent, peek("X-Actor-Id", "b"))

	write("[{client: billing}]")
	n.ReloadActors()
	require.Equal(t, http.StatusNoContent, peek("X-Actor-Id", "b"), "a faulty file changes nothing")
	require.Contains(t, log.String(), "the registry of actors cannot be read again")
	write("[{client: billing, issuer: 'https://other.example', actor: c}]")
	n.ReloadActors()
	require.Equal(t, http.StatusNoContent, peek("X-Actor-Id", "b"), "an issuer that the hub does not trust is a fault")

	require.NoError(t, os.Remove(cfg.File()))
	for range 3 {
		ahead.Add(int64(time.Second))
		require.Equal(t, http.StatusNoContent, peek("X-Actor-Id", "b"))
	}
	require.Equal(t, 2, strings.Count(log.String(), "cannot be read again"), "each failure is logged once")

	write("[]")
	n.ReloadActors()
	require.Equal(t, http.StatusForbidden, peek())
}

// Apart from actors' ids, and the subject of an operator's token, the log must
// contain neither tokens nor their claims. Responses must contain neither
// tokens nor claims.
func TestNode_LogsNoTokenAndNoClaim(t *testing.T) {
	issuer := identitytest.Start(t)
	var log safeBuffer
	cfg := withTokens(issuer)
	cfg.Admin.Token = "canary-of-the-operators"
	n, stop := start(t, cfg, node.Options{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	canary := identitytest.Claims{"sub": "canary-subject", "azp": "canary-client", "tid": "canary-tenant", "email": "canary@example.org", "roles": []string{"canary-role"}}
	with := func(more identitytest.Claims) string {
		claims := maps.Clone(canary)
		maps.Copy(claims, more)
		return issuer.Token(claims)
	}
	// Valid tokens are sent first, because many invalid tokens delay all
	// requests from the same address.
	all := with(identitytest.Claims{"roles": []string{"actor", "domain:Charges", "operator", "metrics"}, "actor": "a"})
	for _, token := range []string{all, "canary-of-the-operators"} {
		for _, request := range [][3]string{
			{http.MethodPost, "/v1/data-available", event},
			{http.MethodPost, "/v1/admin/queues/a/freeze", `{"who":"kim","why":"ticket 4711"}`},
			{http.MethodPost, "/v1/admin/queues/a/thaw", `{"why":"ticket 4711"}`},
			{http.MethodPost, "/v1/admin/queues/a/skip", `{"why":"ticket 4711","bundleId":"7a1c1b6e-0d39-4a55-8f0e-0d6f5f5f9a01"}`},
			{http.MethodPost, "/v1/admin/check", `{}`},
			{http.MethodPost, "/v1/data-available", strings.Replace(event, "Charges", "TimeSeries", 1)},
			{http.MethodPost, "/v1/subscriptions", `{"callback_url":"http://127.0.0.1:1/"}`},
			{http.MethodPut, "/v1/resources/x", `{}`},
			{http.MethodGet, "/v1/objects", ""},
			{http.MethodGet, "/debug/pprof/goroutine?debug=1", ""},
			{http.MethodGet, "/metrics", ""},
			{http.MethodGet, "/readyz", ""},
			{http.MethodPost, "/broker/producer", ""},
		} {
			require.NotContains(t, answerOf(t, request[0], n.URL()+request[1], request[2], token), "canary", request)
		}
	}
	records := answerOf(t, http.MethodGet, n.URL()+"/v1/admin/queues/a/records", "", all)
	require.Contains(t, records, `"who":"canary-subject (kim)"`)
	require.Contains(t, records, `"who":"admin.token (kim)"`)
	require.NotContains(t, strings.ReplaceAll(records, "canary-subject", ""), "canary")
	foreign := identitytest.Start(t)
	for _, token := range []string{
		with(nil), with(identitytest.Claims{"roles": []string{"actor"}, "actor": "a"}), with(identitytest.Claims{"aud": "canary-audience"}),
		with(identitytest.Claims{"iss": "https://canary.example"}), with(identitytest.Claims{"exp": "canary"}), with(identitytest.Claims{"roles": "canary"}),
		with(identitytest.Claims{"actor": "canary canary"}), foreign.Token(canary), foreign.Sign(foreign.Key(), issuer.Claims(canary), nil), "canary", "canary.canary.canary",
	} {
		for _, path := range []string{"/v1/peek", "/api/peek", "/v1/deliveries", "/v1/admin/queues/a", "/broker/producers", "/v1/peek?access_token=" + token} {
			require.NotContains(t, answerOf(t, http.MethodGet, n.URL()+path, "", token), "canary", path)
		}
	}
	require.NoError(t, stop())
	logged := log.String()
	require.Contains(t, logged, `"who":"canary-subject (kim)"`)
	logged = strings.NewReplacer(`"who":"canary-subject (kim)"`, "", `"who":"canary-subject"`, "", `"principal":"canary-subject"`, "").Replace(logged)
	for _, text := range []string{"canary", issuer.Token(nil)[:20], "eyJ"} {
		require.NotContains(t, logged, text)
	}
	require.Contains(t, log.String(), `"problem":"invalid-token"`)
}

func TestNode_ListensToOtherMachinesWithTokensAndTLSOnly(t *testing.T) {
	issuer := identitytest.Start(t)
	cfg := withTokens(issuer)
	cfg.Listen = "0.0.0.0:0"
	require.ErrorContains(t, cfg.Validate(), "can be read on the way")
	cfg.TLS.Certificate, cfg.TLS.Key = "hub.pem", "hub.key"
	require.NoError(t, cfg.Validate())
}

// A transporter is a function that implements policy.Transporter.
type transporter func(*http.Request) (*http.Response, error)

func (f transporter) Do(r *http.Request) (*http.Response, error) { return f(r) }

// Forged tokens must cause no store requests, and at most two fetches of the
// issuer's keys per minute.
func TestNode_SpendsNothingOnForgedTokens(t *testing.T) {
	issuer, forger := identitytest.Start(t), identitytest.Start(t)
	var calls atomic.Int64
	cfg := withTokens(issuer)
	cfg.Survey.Units = 0 // without the survey, whose requests would be counted
	n, _ := start(t, cfg, node.Options{ReadinessInterval: -1, SweepEvery: time.Hour, PullOnly: true, WrapTransport: func(next policy.Transporter) policy.Transporter {
		return transporter(func(r *http.Request) (*http.Response, error) {
			calls.Add(1)
			return next.Do(r)
		})
	}})
	require.Equal(t, http.StatusNoContent, callAs(t, http.MethodGet, n.URL()+"/v1/peek", issuer.Actor("a")).StatusCode)
	before := calls.Load()
	for range 200 {
		forger.Rotate()
		forged := callAs(t, http.MethodGet, n.URL()+"/v1/peek", forger.Token(identitytest.Claims{"iss": issuer.URL}))
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusTooManyRequests}, forged.StatusCode)
	}
	require.Less(t, calls.Load()-before, int64(20), "the node itself makes some calls")
	require.LessOrEqual(t, issuer.Fetches(), 2)
}
