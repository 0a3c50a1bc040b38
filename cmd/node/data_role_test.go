package node_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A dataRoleGate is a Cosmos account that serves only requests that a
// data-plane role permits.
type dataRoleGate struct {
	http.Handler
	actions []string

	mu      sync.Mutex
	used    []string
	refused []string
}

// ServeHTTP answers 403 if the role lacks an action that the request requires.
func (g *dataRoleGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	needed := dataActions(r, body)
	g.mu.Lock()
	g.used = append(g.used, needed...)
	isAllowed := true
	for _, a := range needed {
		if !slices.Contains(g.actions, a) {
			isAllowed = false
			g.refused = append(g.refused, a)
		}
	}
	g.mu.Unlock()
	if !isAllowed {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	g.Handler.ServeHTTP(w, r)
}

func (g *dataRoleGate) hasUsed(action string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.used, func(a string) bool { return strings.HasSuffix(a, action) })
}

// dataActions returns the actions that a request requires. The documentation of
// Cosmos DB does not name the actions for a patch. A patch reads and replaces a
// document, so it requires the actions for reading and for replacing.
func dataActions(r *http.Request, body []byte) []string {
	const account, container = "Microsoft.DocumentDB/databaseAccounts/", "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/"
	ofOperation := map[string][]string{
		"create": {container + "items/create"}, "read": {container + "items/read"}, "replace": {container + "items/replace"},
		"upsert": {container + "items/upsert"}, "delete": {container + "items/delete"}, "patch": {container + "items/read", container + "items/replace"},
	}
	_, document, isDocument := strings.Cut(r.URL.Path, "/docs")
	switch {
	case !isDocument && r.Method == http.MethodGet:
		return []string{account + "readMetadata"}
	case isDocument && strings.EqualFold(r.Header.Get("x-ms-cosmos-is-batch-request"), "true"):
		var operations []struct{ OperationType string }
		if err := json.Unmarshal(body, &operations); err != nil {
			return []string{"a batch that cannot be read"}
		}
		var all []string
		for _, o := range operations {
			all = append(all, ofOperation[strings.ToLower(o.OperationType)]...)
		}
		return all
	case isDocument && r.Header.Get("A-IM") != "":
		return []string{container + "readChangeFeed"}
	case isDocument && strings.Contains(r.Header.Get("Content-Type"), "query+json"):
		return []string{container + "executeQuery"}
	case isDocument && r.Method == http.MethodPost && document == "":
		if strings.EqualFold(r.Header.Get("x-ms-documentdb-is-upsert"), "true") {
			return ofOperation["upsert"]
		}
		return ofOperation["create"]
	case isDocument && document != "":
		name := map[string]string{http.MethodGet: "read", http.MethodPut: "replace", http.MethodDelete: "delete", http.MethodPatch: "patch"}[r.Method]
		if all := ofOperation[name]; all != nil {
			return all
		}
	}
	return []string{r.Method + " " + r.URL.Path}
}

// TestDataRole_HasExactlyTheActionsOfAHub runs a hub whose identity has the
// role from the templates. Each action of the role must be used, and none may
// be missing.
func TestDataRole_HasExactlyTheActionsOfAHub(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	cfg := pushSettings(t.TempDir())
	cfg.Push.Attempts = 1 // a call that fails once becomes a dead letter
	role := deployment.NewTable(&cfg).DataRole
	gate := &dataRoleGate{Handler: engine.Handler(), actions: role.Actions}
	cfg.Cosmos.Endpoint, cfg.Cosmos.Key = serveHTTP(t, engine.Handler()), config.Secret(engine.Key())
	_, err = node.Provision(t.Context(), &cfg, node.ProvisionOptions{}, node.Options{})
	require.NoError(t, err)

	cfg.Cosmos.Endpoint = serveHTTP(t, gate)
	found, err := node.Provision(t.Context(), &cfg, node.ProvisionOptions{CheckOnly: true}, node.Options{})
	require.NoError(t, err)
	for _, r := range found {
		require.Empty(t, r.Left, "the role may check, too")
	}
	n, stop := start(t, cfg, node.Options{SweepEvery: time.Hour})
	expect := func(status int, method, path, actor, body string) string {
		t.Helper()
		got, answer := call(t, method, n.URL()+path, actor, body)
		require.Equal(t, status, got, answer)
		return answer
	}
	r := startReceiver(t, func(*receivedCall) int { return http.StatusTeapot })
	status, answer := send(t, n, "PUT", "/v1/subscriptions/"+ownID, "application/json", `{"callback_url":"`+r.URL+`"}`)
	require.Equal(t, http.StatusCreated, status, answer)
	status, answer = send(t, n, "POST", "/v1/events", "application/cloudevents+json", `{"specversion":"1.0","id":"one","source":"/tests","type":"made"}`)
	require.Equal(t, http.StatusAccepted, status, answer)
	r.awaitCalls(t, "one")
	require.Eventually(t, func() bool {
		_, delivery := send(t, n, "GET", "/v1/deliveries/"+ownID+".0.0", "", "")
		return strings.Contains(delivery, `"state":"dead"`)
	}, 10*time.Second, 10*time.Millisecond)
	status, answer = send(t, n, "POST", "/v1/deliveries/"+ownID+".0.0/replay", "", "")
	require.Less(t, status, 300, answer)
	r.awaitCalls(t, "one")
	expect(202, http.MethodPost, "/v1/data-available", "", event)
	for range 2 {
		expect(200, http.MethodGet, "/v1/peek?bundleId=6f0e0f4e-4a35-4b3e-a1a3-2a8c4f0d8c11", "a", "")
	}
	expect(200, http.MethodDelete, "/v1/dequeue/6f0e0f4e-4a35-4b3e-a1a3-2a8c4f0d8c11", "a", "")
	expect(204, http.MethodGet, "/v1/peek", "a", "")
	const object = `{"Records":[{"eventTime":"2026-03-01T12:00:00Z","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"readings"},"object":{"key":"a","sequencer":"01"}}}]}`
	status, answer = send(t, n, http.MethodPost, "/v1/object-events", "application/json", object, "Authorization", "Bearer "+adminToken)
	require.Equal(t, 200, status, answer)
	status, answer = call(t, http.MethodPost, n.URL()+"/v1/admin/check", "", `{"actor":""}`)
	require.Less(t, status, 300, answer)
	for _, action := range []string{"items/upsert", "readChangeFeed"} {
		require.Eventually(t, func() bool { return gate.hasUsed(action) }, 10*time.Second, 10*time.Millisecond, action)
	}
	require.NoError(t, stop())

	require.Empty(t, gate.refused)
	slices.Sort(gate.used)
	require.Equal(t, role.Actions, slices.Compact(gate.used))
}
