package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// reportObject sends a store's report about an object.
func reportObject(t *testing.T, n *node.Node, event, sequencer string) {
	t.Helper()
	body := fmt.Sprintf(`{"Records":[{"eventTime":"2026-03-01T12:00:00Z","eventName":"%s","s3":{"bucket":{"name":"readings"},"object":{"key":"a","sequencer":"%s"}}}]}`, event, sequencer)
	status, answer := send(t, n, http.MethodPost, "/v1/object-events", "application/json", body, "Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, `"accepted":1`)
}

// getJSON reads a JSON document with the operators' token.
func getJSON(t *testing.T, n *node.Node, path string, into any) {
	t.Helper()
	status, body := send(t, n, http.MethodGet, path, "", "", "Authorization", "Bearer "+adminToken)
	require.Equal(t, http.StatusOK, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), into))
}

func TestAWatchOfAnObject_IsCalledWhenItsCurrentStateChanges(t *testing.T) {
	url, calls := startCallbackServer(t)
	cfg := pushSettings(t.TempDir())
	n, stop := start(t, cfg, node.Options{})
	const created, removed = "ObjectCreated:Put", "ObjectRemoved:Delete"
	reportObject(t, n, created, "01")
	var list struct {
		Results []struct {
			ID string `json:"id"`
		} `json:"results"`
	}
	getJSON(t, n, "/v1/objects?bucket=readings", &list)
	row := list.Results[0].ID

	watch := func(id string, headers ...string) (int, string) {
		draft := `{"resource": "` + n.URL() + `/v1/objects/` + id + `", "callback": "` + url + `/ok"}`
		return send(t, n, http.MethodPost, "/v1/_notifications/watch", "application/json", draft, append(headers, "X-Actor-Id", "watcher")...)
	}
	operator := []string{"Authorization", "Bearer " + adminToken}
	status, body := watch(row)
	require.Equal(t, http.StatusUnauthorized, status, body)
	require.Contains(t, body, "operator's token")
	status, body = watch("AQ", operator...)
	require.Equal(t, http.StatusBadRequest, status, body)
	require.Contains(t, body, "/resource")
	status, body = watch(row, operator...)
	require.Equal(t, http.StatusOK, status, body) // the response is the new watch, because the client followed the redirect
	var stored struct {
		Resource string `json:"resource"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &stored))

	reportObject(t, n, created, "02")
	c := <-calls
	require.Equal(t, "updated", c.body["event"])
	require.Equal(t, stored.Resource, c.body["resource"])
	var current struct {
		ID        string `json:"id"`
		Sequencer string `json:"sequencer"`
	}
	object := stored.Resource[len(n.URL()):]
	getJSON(t, n, object, &current)
	require.Equal(t, "02", current.Sequencer, "the resource is the object, as it is now")
	require.NotEqual(t, row, current.ID)

	reportObject(t, n, removed, "03")
	require.Equal(t, "deleted", (<-calls).body["event"])
	status, body = send(t, n, http.MethodGet, object, "", "", operator...)
	require.Equal(t, http.StatusNotFound, status, body)
	getJSON(t, n, object+"/history", &list)
	require.Len(t, list.Results, 3)
	status, body = watch(row, operator...)
	require.Equal(t, http.StatusNotFound, status, body)

	reportObject(t, n, created, "04") // creates the object again, which causes no notification
	reportObject(t, n, created, "05")
	require.Equal(t, "updated", (<-calls).body["event"])
	require.NoError(t, stop())
	require.Empty(t, calls)

	n, stop = start(t, cfg, node.Options{})
	var watches struct {
		Items []struct {
			Triggered int `json:"count_triggered"`
			Delivered int `json:"count_delivered"`
		} `json:"items"`
	}
	require.Eventually(t, func() bool {
		status, body := send(t, n, http.MethodGet, "/v1/_notifications/watch", "", "", "X-Actor-Id", "watcher")
		require.Equal(t, http.StatusOK, status, body)
		require.NoError(t, json.Unmarshal([]byte(body), &watches))
		return watches.Items[0].Triggered == 3 && watches.Items[0].Delivered == 3
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, stop())
}
