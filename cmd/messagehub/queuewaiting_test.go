package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/hubclient"
)

func TestQueueWaiting_ShowsEachGroup(t *testing.T) {
	url := memoryHub(t, nil)
	messagehub(t, events(1, 3), "send", "--url", url, "-")
	messagehub(t, "", "peek", "--url", url, "--actor", actorA, "--bundle-id", bundleID)
	messagehub(t, event(4, ""), "send", "--url", url, "-")

	got := messagehub(t, "", "queue", "waiting", "--url", url, "--actor", actorA)
	require.Equal(t, 0, got.status, got.err)
	lines := strings.Split(got.out, "\n")
	require.Len(t, lines, 5)
	require.Equal(t, []string{"GROUP", "WAITING", "OLDEST", "OPEN", "BUNDLE", "EVENTS", "OPENED"}, strings.Fields(lines[0]))
	require.Equal(t, []string{"aggregations", "0", "-", "-", "-", "-"}, strings.Fields(lines[1]))
	masterdata := strings.Fields(lines[2])
	require.Equal(t, []string{"masterdata", "4"}, masterdata[:2])
	require.Equal(t, []string{bundleID, "3"}, masterdata[3:5])

	var q struct{ Queues []hubclient.Queue }
	require.NoError(t, json.Unmarshal([]byte(messagehub(t, "", "queue", "waiting", "--json", "--url", url, "--actor", actorA).out), &q))
	require.Equal(t, int64(4), q.Queues[1].Waiting)
	require.Equal(t, 3, q.Queues[1].Open.Events)
}

func TestQueueWaiting_ShowsAQuestionMarkForAnUnknownAge(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"queues":[{"group":"a","waiting":1},{"group":"b","waiting":2,"ageSeconds":3661}]}`))
	}))
	defer server.Close()
	got := messagehub(t, "", "queue", "waiting", "--url", server.URL, "--actor", actorA)
	require.Equal(t, result{0, "GROUP  WAITING  OLDEST  OPEN BUNDLE  EVENTS  OPENED\n" +
		"a      1        ?       -            -       -\n" +
		"b      2        1h1m1s  -            -       -\n", ""}, got)
}

func TestQueues_IsTheHiddenFormerNameOfQueueWaiting(t *testing.T) {
	url := memoryHub(t, nil)
	require.Equal(t, messagehub(t, "", "queue", "waiting", "--url", url, "--actor", actorA), messagehub(t, "", "queues", "--url", url, "--actor", actorA))
	require.NotContains(t, messagehub(t, "", "--help").out, "\n  queues ")
}

func TestPeek_SendsItsWaitToTheHub(t *testing.T) {
	var asked string
	url := memoryHub(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.RequestURI()
			next.ServeHTTP(w, r)
		})
	})
	require.Equal(t, 3, messagehub(t, "", "peek", "--url", url, "--actor", actorA, "--wait", "10ms").status)
	require.Equal(t, "/v1/peek?wait=10ms", asked)
	got := messagehub(t, "", "peek", "--url", url, "--actor", actorA, "--wait", "1h")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "from 0 to 1m0s")
}
