package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// Ids of subscriptions.
const (
	hiddenID = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
	seenID   = "1b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
	noID     = "2b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
)

// A bundleStore forwards to the embedded store, which is set only after the server has started.
type bundleStore struct{ repository.BundleWatches }

// serveNotifications starts a server with subscriptions, deliveries and watches. The fixture's
// client may act on all groups of its actor. bound contains the headers of a client that may act
// only on the group timeseries.
func serveNotifications(t *testing.T) (f *hubFixture, bound []string) {
	t.Helper()
	base, err := domain.ParseResourceBase(watchHub)
	require.NoError(t, err)
	store, cursors, resources := &bundleStore{}, memory.NewCursors(time.Now), memory.NewResources(time.Now)
	watches := watch.New(watch.Ports{
		Watches: memory.NewWatches(cursors), Resources: resources, Changes: resources, Cursors: cursors,
		Streams: memory.NewStreams(repository.MessageRetention, time.Now), Bundles: store,
	}, watch.Options{Base: base})
	_, deliveries := withDeliveries(t)
	f = serveBound(t, deliveries, func(o *api.Options, _ *hub.Options) { o.Watches = watches })
	store.BundleWatches = f.store
	f.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	f.tokens.all = f.tokens.issuer.Token(identitytest.Claims{"roles": []string{"actor", "domain:TimeSeries", "domain:Charges"}, "actor": actor})
	return f, []string{"Authorization", "Bearer " + f.tokens.issuer.Token(identitytest.Claims{"azp": "bound", "roles": []string{"actor"}})}
}

func TestGroups_BoundSubscriptionsAndDeliveries(t *testing.T) {
	f, bound := serveNotifications(t)
	const callback = `"callback_url":"https://example.org/hook"}`
	f.do("PUT", "/v1/subscriptions/"+hiddenID, `{"topic":"data-available",`+callback).wants(201)
	f.do("PUT", "/v1/subscriptions/"+seenID, `{"topic":"prices",`+callback, bound...).wants(201)

	for _, topic := range []string{"data-available", "bundle-dequeued"} {
		draft := `{"topic":"` + topic + `",` + callback
		p := f.do("POST", "/v1/subscriptions", draft, bound...).problem(403, "missing-right")
		require.Contains(t, p.Detail, "the topic "+topic+" is about all of them")
		f.do("PUT", "/v1/subscriptions/"+noID, draft, bound...).problem(403, "missing-right")
		f.do("PUT", "/v1/subscriptions/"+seenID, draft, bound...).problem(403, "missing-right")
	}
	f.do("PUT", "/v1/subscriptions/"+hiddenID, `{"topic":"prices",`+callback, bound...).problem(403, "missing-right")

	list := f.do("GET", "/v1/subscriptions", "", bound...).wants(200).body
	require.Contains(t, list, seenID)
	require.NotContains(t, list, hiddenID)
	require.Contains(t, f.do("GET", "/v1/subscriptions", "").wants(200).body, hiddenID)

	// The bound client gets the same response as for a subscription that does not exist.
	for _, route := range []string{
		"GET /v1/subscriptions/ID", "DELETE /v1/subscriptions/ID", "POST /v1/subscriptions/ID/pause", "POST /v1/subscriptions/ID/resume",
		"POST /v1/subscriptions/ID/test", `POST /v1/subscriptions/ID/replays {"from":"2030-01-01T00:00:00Z","to":"2030-01-01T01:00:00Z"}`,
		"GET /v1/deliveries?subscription=ID", "GET /v1/deliveries/ID.0.17", "GET /v1/deliveries/ID.0.17/explain", "POST /v1/deliveries/ID.0.17/replay",
	} {
		parts := strings.SplitN(route+" ", " ", 3)
		body := strings.TrimSpace(parts[2])
		hidden := f.do(parts[0], strings.Replace(parts[1], "ID", hiddenID, 1), body, bound...).wants(404)
		unknown := f.do(parts[0], strings.Replace(parts[1], "ID", noID, 1), body, bound...).wants(404)
		require.Equal(t, unknown.body, strings.ReplaceAll(hidden.body, hiddenID, noID), route)
	}
	f.do("POST", "/v1/subscriptions/"+hiddenID+"/rotate", "{}", bound...).problem(404, "not-found")
	f.do("GET", "/v1/subscriptions/"+hiddenID, "").wants(200)
	f.do("GET", "/v1/deliveries?subscription="+hiddenID, "").wants(200)
	f.do("GET", "/v1/deliveries?subscription="+seenID, "", bound...).wants(200)
	f.do("POST", "/v1/subscriptions/"+seenID+"/pause", "", bound...).wants(200)
	f.do("DELETE", "/v1/subscriptions/"+seenID, "", bound...).wants(200)
}

func TestGroups_BoundWatches(t *testing.T) {
	f, bound := serveNotifications(t)
	f.do("PUT", "/v1/subscriptions/"+hiddenID, `{"topic":"data-available","callback_url":"https://example.org/hook"}`).wants(201)
	f.post(202, newEvent(1, "origin", "Charges"), newEvent(2))
	other := f.do("GET", "/v1/peek/masterdata", "").wants(200).header.Get("MessageId")
	own := f.do("GET", "/v1/peek/timeseries", "", bound...).wants(200).header.Get("MessageId")
	watched := func(path string) string {
		return `{"resource":"` + watchHub + path + `","callback":"https://example.org/changed"}`
	}
	const route = "/v1/_notifications/watch"
	create := func(path string, header ...string) domainAnswer {
		return f.do("POST", route, watched(path), header...)
	}
	for _, path := range []string{"/v1/bundles/" + other, "/v1/subscriptions/" + hiddenID} {
		refused, unknown := create(path, bound...).wants(404), create("/v1/bundles/"+id(9), bound...).wants(404)
		require.Equal(t, unknown.body, refused.body)
	}
	hidden := create("/v1/bundles/" + other).wants(303).header.Get("Location")
	seen := create("/v1/bundles/"+own, bound...).wants(303).header.Get("Location")

	list := f.do("GET", route, "", bound...).wants(200).body
	require.Contains(t, list, `"count":1`)
	require.Contains(t, list, own)
	require.NotContains(t, f.do("GET", route+"?offset=1", "", bound...).wants(200).body, own)
	require.Contains(t, f.do("GET", route, "").wants(200).body, `"count":2`)
	f.do("GET", hidden, "", bound...).wants(404)
	f.do("GET", hidden+"/attempts", "", bound...).wants(404)
	f.do("PUT", hidden, watched("/v1/bundles/"+other), bound...).wants(404)
	f.do("DELETE", hidden, "", bound...).wants(404)
	f.do("GET", hidden, "").wants(200)
	f.do("GET", seen+"/attempts", "", bound...).wants(200)
	f.do("PUT", seen, watched("/v1/bundles/"+own), bound...).wants(204)
	f.do("DELETE", seen, "", bound...).wants(204)
}
