package api_test

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// tokenRoles returns the roles of an operation in the OpenAPI document. A token needs one of them.
func tokenRoles(op *openapi3.Operation) (roles []string) {
	if op.Security == nil {
		return nil
	}
	for _, alternative := range *op.Security {
		roles = append(roles, alternative["token"]...)
	}
	return roles
}

func TestRights_AreThoseOfTheDocument(t *testing.T) {
	err := chi.Walk(api.New(api.Options{}).Handler().(chi.Router), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		_, hasRow := api.RightsOf(method, route)
		require.True(t, hasRow, "%s %s has no row in the table of rights", method, route)
		return nil
	})
	require.NoError(t, err)
	doc, _ := document()
	documented := 0
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			roles, _ := api.RightsOf(method, path)
			require.Equal(t, roles, tokenRoles(op), "%s %s", method, path)
			if method != http.MethodHead && !strings.HasPrefix(path, "/broker/") {
				documented++
			}
		}
	}
	require.Equal(t, documented, api.RightsCount(), "a row of a route that does not exist")
}

// principals returns senders with different roles, by name.
func principals(k *tokens) map[string]principal {
	return map[string]principal{
		"none":    {status: http.StatusUnauthorized},
		"expired": {token: k.issuer.Token(identitytest.Claims{"roles": everyRole, "actor": actor, "exp": time.Now().Add(-time.Second).Unix()}), status: http.StatusUnauthorized},

		"actor":            {token: k.issuer.Actor(actor), roles: []string{"actor"}},
		"other actor":      {token: k.issuer.Actor("other"), roles: []string{"actor"}},
		"actor of a group": {token: k.issuer.Token(identitytest.Claims{"azp": "bound", "roles": []string{"actor"}}), roles: []string{"actor"}, never: []string{"/api/peek/masterdata", "/api/peek/aggregations"}},
		"domain":           {token: k.issuer.Role("domain:Charges"), roles: []string{"domain"}},
		"reader":           {token: k.issuer.Role("operator.read"), roles: []string{"operator.read"}},
		"operator":         {token: k.issuer.Role("operator"), roles: []string{"operator.read", "operator"}},
		"operator's token": {token: token, roles: []string{"operator.read", "operator"}, status: http.StatusUnauthorized},
		"metrics":          {token: k.issuer.Role("metrics"), roles: []string{"metrics"}},
		"no role":          {token: k.issuer.Role("admin", "Actor")},
	}
}

var everyRole = []string{"actor", "domain:Charges", "operator.read", "operator", "metrics"}

type principal struct {
	token  string
	roles  []string
	status int      // status of a refusal; 0 means 403
	never  []string // paths that are refused with 403 although the role allows them
}

// refusal returns the status with which a request of p is refused. It returns 0 if p has one of
// roles.
func (p *principal) refusal(path string, roles []string) int {
	switch {
	case slices.Contains(p.never, path):
		return http.StatusForbidden
	case len(roles) == 0, slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(p.roles, role) }):
		return 0
	case p.status != 0:
		return p.status
	}
	return http.StatusForbidden
}

func TestRights_HoldForEachRouteAndPrincipal(t *testing.T) {
	f := serveBound(t)
	parameters := strings.NewReplacer("{group}", "timeseries", "{actor}", actor, "{name}", "x", "{objectId}", "x", "{jobId}", "x", "{profile}", "heap")
	doc, _ := document()
	requests := 0
	for path, item := range doc.Paths.Map() {
		if strings.HasPrefix(path, "/broker/") {
			continue // these routes require tokens of their own
		}
		target := parameters.Replace(path)
		for strings.Contains(target, "{") {
			begin, end := strings.Index(target, "{"), strings.Index(target, "}")
			target = target[:begin] + id(1) + target[end+1:]
		}
		for method, op := range item.Operations() {
			roles := tokenRoles(op)
			for name, p := range principals(f.tokens) {
				header := ""
				if p.token != "" {
					header = "Bearer " + p.token
				}
				a := f.do(method, target, "", "Authorization", header)
				requests++
				if status := p.refusal(path, roles); status != 0 {
					require.Equal(t, status, a.status, "%s: %s %s\n%s", name, method, path, a.body)
					if !slices.Contains(p.never, path) {
						requireRefusal(t, method, path, a)
					}
					continue
				}
				require.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, a.status, "%s: %s %s\n%s", name, method, path, a.body)
			}
		}
	}
	require.Greater(t, requests, 600)
}

// requireRefusal requires that the response a names what is missing. Refusals of the original have
// no body.
func requireRefusal(t *testing.T, method, path string, a domainAnswer) {
	t.Helper()
	if a.header.Get("WWW-Authenticate") == "" {
		t.Errorf("%s %s: no WWW-Authenticate", method, path)
	}
	if strings.HasPrefix(path, "/api/") {
		require.Empty(t, a.body)
		return
	}
	if method == http.MethodHead {
		return
	}
	var p problem
	require.NoError(t, json.Unmarshal([]byte(a.body), &p))
	want := "urn:messagehub:problem:invalid-token"
	if a.status == http.StatusForbidden {
		want = "urn:messagehub:problem:missing-right"
		require.Contains(t, a.header.Get("WWW-Authenticate"), `error="insufficient_scope"`)
	}
	require.Contains(t, []string{want, "urn:messagehub:problem:missing-token"}, p.Type)
}

// serveBound starts a server that accepts tokens. Its registry restricts the client "bound" to the
// group timeseries of the usual actor.
func serveBound(t *testing.T, change ...func(*api.Options, *hub.Options)) *hubFixture {
	t.Helper()
	timeseries, err := domain.ParseGroup("timeseries")
	require.NoError(t, err)
	id, err := domain.ParseActorID(actor)
	require.NoError(t, err)
	registry := identity.NewRegistry([]identity.Entry{{Client: "bound", Actor: id, Groups: []domain.Group{timeseries}}})
	return serveIdentity(t, func(o *identity.Options) { o.Registry = func() *identity.Registry { return registry } }, change...)
}

func TestActor_SeesItsOwnBundlesOnly(t *testing.T) {
	f := serveTokens(t)
	f.post(202, newEvent(1))
	other := "Bearer " + f.tokens.issuer.Actor("other")
	bundle := f.do("GET", "/v1/peek", "").wants(200).header.Get("MessageId")
	f.do("GET", "/v1/peek", "", "Authorization", other).wants(204)
	for _, route := range [][2]string{{"GET", "/v1/bundles/"}, {"DELETE", "/v1/dequeue/"}} {
		theirs := f.do(route[0], route[1]+bundle, "", "Authorization", other).problem(404, "not-found")
		unknown := f.do(route[0], route[1]+id(9), "", "Authorization", other).problem(404, "not-found")
		require.Equal(t, strings.ReplaceAll(unknown.Detail, id(9), bundle), theirs.Detail)
	}
	f.do("DELETE", "/api/dequeue?bundleId="+bundle, "", "Authorization", other).wants(404)
	f.do("DELETE", "/v1/dequeue/"+bundle, "").wants(200)
}

func TestActor_ActsForThoseThatItsTokenNames(t *testing.T) {
	f := serveTokens(t)
	both := "Bearer " + f.tokens.issuer.Token(identitytest.Claims{"roles": []string{"actor"}, "actor": []string{"a", "b"}})
	f.do("GET", "/v1/peek", "", "Authorization", both, "X-Actor-Id", "b").wants(204)
	f.do("GET", "/v1/peek", "", "Authorization", both).problem(400, "invalid-actor")
	f.do("GET", "/v1/peek", "", "Authorization", both, "X-Actor-Id", "c").problem(403, "missing-right")
	f.do("GET", "/v1/peek", "", "Authorization", both, "X-Actor-Id", "a", "X-Actor-Id", "b").problem(400, "invalid-actor")
	none := "Bearer " + f.tokens.issuer.Role("actor")
	f.do("GET", "/v1/peek", "", "Authorization", none).problem(403, "missing-right")
	f.do("GET", "/api/peek", "", "Authorization", both, "X-Actor-Id", "c").wants(403)
	f.do("GET", "/v1/peek", "", "Authorization", "", "X-Actor-Id", "a").problem(401, "invalid-token")
}

func TestDomain_AnnouncesForItsOriginsOnly(t *testing.T) {
	f := serveTokens(t)
	p := f.do("POST", "/v1/data-available", array(newEvent(1, "origin", "Charges"), newEvent(2), newEvent(3, "origin", "MarketRoles"))).problem(403, "missing-right")
	require.Equal(t, []string{"/0/origin", "/2/origin"}, p.pointers())
	f.do("GET", "/v1/peek", "").wants(204)
}

// A reader that may also act for an actor names this actor. It reads only what the actor may read.
func TestReader_ReadsAsTheActorThatItNames(t *testing.T) {
	f := serveTokens(t)
	both := "Bearer " + f.tokens.issuer.Token(identitytest.Claims{"roles": []string{"actor", "operator.read"}, "actor": "a"})
	const list = "/v1/deliveries?subscription=x"
	f.do("GET", list, "", "Authorization", both).problem(503, "not-provisioned")
	f.do("GET", list, "", "Authorization", both, "X-Actor-Id", "b").problem(403, "missing-right")
}

func TestBroker_AcceptsTokensOfOperators(t *testing.T) {
	f := serveTokens(t, withBroker(t))
	const producer, body = "/broker/producer/p", "name=p&token=a-token-of-a-producer"
	reader := "Bearer " + f.tokens.issuer.Role("operator.read")
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	f.do("PUT", producer, body, append(form, "Authorization", reader)...).problem(403, "wrong-credentials")
	f.do("PUT", producer, body, append(form, "Authorization", "Bearer "+f.tokens.issuer.Role("operator"))...).wants(201)
	f.do("GET", producer, "", "Authorization", reader).wants(200)
	f.do("GET", producer, "", "X-Broker-Admin-Token", token, "Authorization", "").wants(200)
	f.do("GET", producer, "", "Authorization", "Bearer "+identitytest.Start(t).Role("operator")).problem(401, "invalid-token")
	f.do("GET", producer, "", "Authorization", "Bearer "+f.tokens.issuer.Role("actor")).problem(403, "wrong-credentials")
}

func TestOrder_IsRecordedUnderTheSubjectOfItsToken(t *testing.T) {
	f := serveTokens(t)
	const queue = "/v1/admin/queues/" + actor
	f.post(202, newEvent(1))
	f.do("POST", queue+"/freeze", `{"why":"ticket 4711"}`).wants(204)
	f.do("POST", queue+"/thaw", `{"who":"kim","why":"ticket 4711"}`).wants(204)
	f.do("POST", queue+"/freeze", `{"who":"kim","why":"ticket 4712"}`, "Authorization", "Bearer "+token).wants(204)
	records := f.do("GET", queue+"/records", "").wants(200).body
	for _, who := range []string{`"who":"subject"`, `"who":"subject (kim)"`, `"who":"admin.token (kim)"`} {
		require.Contains(t, records, who)
	}
}

// A client is restricted to some groups of an actor. It cannot fetch or see anything of the
// remaining groups.
func TestGroups_BoundWhatAClientMayFetch(t *testing.T) {
	f := serveBound(t)
	bound := []string{"Authorization", "Bearer " + f.tokens.issuer.Token(identitytest.Claims{"azp": "bound", "roles": []string{"actor"}})}
	f.tokens.all = f.tokens.issuer.Token(identitytest.Claims{"roles": []string{"actor", "domain:TimeSeries", "domain:Charges"}, "actor": actor})
	f.post(202, newEvent(1, "origin", "Charges"))
	other := f.do("GET", "/v1/peek/masterdata", "").wants(200).header.Get("MessageId")

	f.do("GET", "/v1/peek", "", bound...).wants(204)
	f.do("GET", "/v1/peek/masterdata", "", bound...).problem(403, "missing-right")
	f.do("GET", "/api/peek/masterdata", "", bound...).wants(403)
	f.do("GET", "/v1/bundles/"+other, "", bound...).problem(404, "not-found")
	f.do("DELETE", "/v1/dequeue/"+other, "", bound...).problem(404, "not-found")
	require.NotContains(t, f.do("GET", "/v1/queues", "", bound...).wants(200).body, "masterdata")

	f.post(202, newEvent(2))
	own := f.do("GET", "/v1/peek", "", bound...).wants(200).header.Get("MessageId")
	f.do("GET", "/v1/bundles/"+own, "", bound...).wants(200)
	f.do("DELETE", "/v1/dequeue/"+own, "", bound...).wants(200)
}

// Two operator tokens are valid at the same time, so that one can be added before the other is
// removed.
func TestOperatorsTokens_AreAllAccepted(t *testing.T) {
	f := serve(t, func(o *api.Options, _ *hub.Options) {
		o.AdminTokens = []api.AdminToken{{Name: "kim", SHA256: sha256.Sum256([]byte("a-token-of-kim"))}, {Name: "bo", SHA256: sha256.Sum256([]byte("a-token-of-bo"))}}
	})
	const queue = "/v1/admin/queues/" + actor + "/records"
	for _, right := range []string{token, "a-token-of-kim", "a-token-of-bo"} {
		f.do("GET", queue, "", "Authorization", "Bearer "+right).wants(200)
	}
	f.do("GET", queue, "", "Authorization", "Bearer a-token-of-no-one").problem(401, "missing-token")
	f.logs.wait(t, `"principal":"kim"`)
	f.logs.wait(t, `"operator_token":"kim"`)
}

func TestLog_NamesThePrincipalOfARequest(t *testing.T) {
	f := serveTokens(t)
	signed := func(claims identitytest.Claims) []string {
		return []string{"Authorization", "Bearer " + f.tokens.issuer.Token(claims)}
	}
	f.do("GET", "/v1/peek", "", signed(identitytest.Claims{"sub": "a-subject", "roles": []string{"actor"}, "actor": actor})...).wants(204)
	f.logs.wait(t, `"principal":"a-subject"`)
	f.do("GET", "/v1/peek", "", signed(identitytest.Claims{"sub": "without-role", "actor": actor})...).problem(403, "missing-right")
	f.logs.wait(t, `"principal":"without-role"`)
	f.do("GET", "/v1/peek", "", signed(identitytest.Claims{"sub": strings.Repeat("ø", 1000), "roles": []string{"actor"}, "actor": actor})...).wants(204)
	f.logs.wait(t, `"principal":"`+strings.Repeat("ø", 199)+`…"`)

	forged := identitytest.Start(t).Token(identitytest.Claims{"sub": "forged", "iss": f.tokens.issuer.URL})
	f.do("GET", "/v1/peek", "", "Authorization", "Bearer "+forged).problem(401, "invalid-token")
	f.logs.wait(t, `"problem":"invalid-token"`)
	require.NotContains(t, f.logs.String(), "forged")
	require.NotContains(t, f.logs.String(), "eyJ", "a token")
}
