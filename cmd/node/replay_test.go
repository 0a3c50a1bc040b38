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

// eventually repeats a GET until isDone accepts the response, and returns that
// response.
func eventually(t *testing.T, n *node.Node, path string, isDone func(map[string]any) bool) map[string]any {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		status, body := send(t, n, http.MethodGet, path, "application/json", "")
		require.Equal(t, http.StatusOK, status, body)
		var all map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &all))
		if isDone(all) {
			return all
		}
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatalf("it never came: %s", body)
		}
	}
}

func TestDeadLetters_AreReplayed(t *testing.T) {
	r := startReceiver(t, func(*receivedCall) int { return http.StatusServiceUnavailable })
	cfg := pushSettings(t.TempDir())
	cfg.Push.Delays = []time.Duration{0, time.Millisecond}
	n, stop := start(t, cfg, node.Options{})
	id := createSubscription(t, n, fmt.Sprintf(`{"callback_url":%q}`, r.URL))
	publishEvents(t, n, "0", "1", "2", "3", "4")
	counters := func(dead, delivered float64) func(map[string]any) bool {
		return func(all map[string]any) bool {
			d := all["delivery"].(map[string]any)
			return d["dead"] == dead && d["delivered"] == delivered
		}
	}
	path := "/v1/subscriptions/" + id
	eventually(t, n, path, counters(5, 0))
	r.set(nil)

	status, body := send(t, n, http.MethodPost, "/v1/deliveries/"+id+".0.2/replay", "", "")
	require.Equal(t, http.StatusAccepted, status, body)
	eventually(t, n, path, counters(5, 1))
	status, body = send(t, n, http.MethodPost, "/v1/deliveries/"+id+".0.9/replay", "", "")
	require.Equal(t, http.StatusNotFound, status, body)

	draft := fmt.Sprintf(`{"from":%q,"to":%q,"filter":"id != '0'","rate":100,`, time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339))
	status, body = send(t, n, http.MethodPost, path+"/replays", "application/json", draft+`"dryRun":true}`)
	require.Equal(t, http.StatusOK, status, body)
	require.JSONEq(t, `{"matched":3,"seen":4,"complete":true}`, body)
	status, body = send(t, n, http.MethodPost, path+"/replays", "application/json", draft+`"of":"dead"}`)
	require.Equal(t, http.StatusAccepted, status, body)
	var started struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(body), &started))
	done := eventually(t, n, path+"/replays/"+started.ID, func(all map[string]any) bool { return all["state"] == "done" })
	require.EqualValues(t, 3, done["matched"])
	eventually(t, n, path, counters(5, 4))

	status, body = send(t, n, http.MethodPost, path+"/replays", "application/json", draft+`"of":"all"}`)
	require.Equal(t, http.StatusAccepted, status, body)
	eventually(t, n, path, counters(5, 8))
	require.NoError(t, stop())
}
