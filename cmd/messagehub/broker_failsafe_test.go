package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	engine "github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// A failSafeHubs contains hubs that share their accounts, each in a separate
// process. It counts the calls of a channel's consumers.
type failSafeHubs struct {
	*testing.T
	environ []string
	sent    []string
	started time.Time // when the newest hub was started

	mu    sync.Mutex
	calls map[string]map[string]int // number of calls by consumer and message
	more  chan struct{}
}

// sharedConsumers is the number of consumers. It is large enough that every
// third of the shards contains consumers. With fewer consumers, a hub that
// joins might acquire only shards without consumers: it acquires them first,
// because no other hub has to release their jobs.
const sharedConsumers = 100

func newFailSafeHubs(t *testing.T) *failSafeHubs {
	t.Helper()
	t.Parallel() // parallel, because these tests mostly wait
	w := &failSafeHubs{T: t, calls: make(map[string]map[string]int), more: make(chan struct{}, 1)}
	cosmos := startEmulator(t, "--in-memory")
	blob := startBlobs(t, "--data", filepath.Join(t.TempDir(), "blob"))
	w.environ = []string{
		"MESSAGEHUB_COSMOS_ENDPOINT=" + cosmos.url, "MESSAGEHUB_COSMOS_KEY=" + engine.WellKnownKey,
		"MESSAGEHUB_BLOB_ENDPOINT=http://" + blob.address + "/" + embedded.WellKnownAccount, "MESSAGEHUB_BLOB_KEY=" + embedded.WellKnownKey,
		"MESSAGEHUB_PUSH_SECRET_KEY=" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
		"MESSAGEHUB_PUSH_ALLOW=127.0.0.0/8", "MESSAGEHUB_PUSH_INSECURE_HTTP=true",
	}
	return w
}

// startNode starts a hub, and returns the hub and its URL.
func (w *failSafeHubs) startNode(failSafe string, environ ...string) (h *hubProcess, url string) {
	w.Helper()
	environ = append(append([]string{"MESSAGEHUB_BROKER_FAIL_SAFE=" + failSafe}, w.environ...), environ...)
	h = spawnHubWith(w.T, environ, "--data", dataFolder(w.T), "--bus-listen", "")
	require.NoError(w, h.waitReady())
	w.started = time.Now()
	return h, h.url(w.T)
}

// createChannel creates the channel and its consumers, with requests to a hub.
func (w *failSafeHubs) createChannel(hub string) {
	w.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		payload, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.calls[r.URL.Path] == nil {
			w.calls[r.URL.Path] = make(map[string]int)
		}
		w.calls[r.URL.Path][string(payload)]++
		nudge(w.more)
	}))
	w.Cleanup(server.Close)
	sendForm(w.T, hub, "/producer/maker", "token", "of-maker")
	sendForm(w.T, hub, "/channel/prices", "token", "of-prices")
	for i := range sharedConsumers {
		name := fmt.Sprint("shop-", i)
		sendForm(w.T, hub, "/channel/prices/consumer/"+name, "token", "of-shop", "callbackUrl", server.URL+"/"+name)
	}
}

// request sends a request to a hub, checks that the status is one of want, and
// returns the body of the response.
func (w *failSafeHubs) request(method, url, body string, want []int, headers ...string) string {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, url, strings.NewReader(body))
	require.NoError(w, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(w, err)
	require.Contains(w, want, resp.StatusCode, string(text))
	return string(text)
}

// broadcast broadcasts a message through a hub.
func (w *failSafeHubs) broadcast(hub string) {
	w.Helper()
	message := fmt.Sprint(len(w.sent))
	w.request(http.MethodPost, hub+"/broker/channel/prices/broadcast", message, []int{http.StatusCreated},
		"X-Broker-Channel-Token", "of-prices", "X-Broker-Producer-ID", "maker", "X-Broker-Producer-Token", "of-maker")
	w.sent = append(w.sent, message)
}

// countMissing returns how many consumers still miss a message, summed over all
// messages.
func (w *failSafeHubs) countMissing() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range sharedConsumers {
		for _, message := range w.sent {
			if w.calls[fmt.Sprint("/shop-", i)][message] == 0 {
				n++
			}
		}
	}
	return n
}

// awaitAll waits until all consumers have received all messages.
func (w *failSafeHubs) awaitAll() {
	w.Helper()
	timeout := time.After(patience)
	for w.countMissing() > 0 {
		select {
		case <-w.more:
		case <-timeout:
			w.Fatalf("%d deliveries are missing after %v", w.countMissing(), patience)
		}
	}
}

var callsMade = regexp.MustCompile(`(?m)^messagehub_push_call_seconds_count(?:\{[^}]*\})? ([0-9]+)`)

// awaitShared broadcasts messages until each hub has called consumers, and
// until the newest hub no longer takes over jobs because it has just started.
func (w *failSafeHubs) awaitShared(hubs ...string) {
	w.Helper()
	end := time.Now().Add(patience)
	for len(hubs) > 0 {
		require.True(w, time.Now().Before(end), "a hub calls no consumer")
		w.broadcast(hubs[0])
		w.awaitAll()
		found := callsMade.FindStringSubmatch(w.request(http.MethodGet, hubs[0]+"/metrics", "", []int{http.StatusOK}))
		if found != nil && found[1] != "0" {
			hubs = hubs[1:]
		}
	}
	<-time.After(time.Until(w.started.Add(13 * time.Second)))
}

// An overdueList is a hub's list of overdue jobs.
type overdueList struct {
	Jobs []struct{ RetriggerURL string }
}

// overdue returns a hub's overdue jobs. Each contains the URL that re-triggers
// it.
func (w *failSafeHubs) overdue(hub string) overdueList {
	w.Helper()
	var l overdueList
	require.NoError(w, json.Unmarshal([]byte(w.request(http.MethodGet, hub+"/broker/overdue?delay=10ms", "", []int{http.StatusOK}, "X-Broker-Admin-Token", operatorToken)), &l))
	return l
}

// Another hub must take over the jobs of a dead hub within 10 seconds, or
// within the configured time.
func TestJobsOfADeadHub_AreTakenOver(t *testing.T) {
	w := newFailSafeHubs(t)
	a, first := w.startNode("on")
	_, second := w.startNode("on")
	w.createChannel(first)
	w.awaitShared(second, first)
	a.kill()
	killed := time.Now()
	w.broadcast(second)
	w.awaitAll()
	t.Logf("all consumers had the message %v after the kill", time.Since(killed).Round(time.Millisecond))
	require.Less(t, time.Since(killed), 15*time.Second)
	require.Empty(t, w.overdue(second).Jobs)
}

func TestJobsOfADeadHub_WithoutTakeoverWaitForARetrigger(t *testing.T) {
	w := newFailSafeHubs(t)
	a, first := w.startNode("off")
	_, second := w.startNode("off")
	w.createChannel(first)
	w.awaitShared(second, first)
	a.kill()
	w.broadcast(second)
	end := time.Now().Add(patience)
	for len(w.overdue(second).Jobs) == 0 { // wait until the second hub notices that the first is dead
		require.True(t, time.Now().Before(end), "the jobs of the dead hub are not listed")
	}
	waiting := w.countMissing()
	require.Positive(t, waiting)
	require.Less(t, waiting, sharedConsumers, "a hub serves what it has")

	for retriggered := 0; w.countMissing() > 0; {
		require.True(t, time.Now().Before(end), "%d jobs were re-triggered, %d are missing", retriggered, w.countMissing())
		for _, j := range w.overdue(second).Jobs {
			// The status is 409 if another job of the same shard was
			// re-triggered before.
			w.request(http.MethodPost, second+j.RetriggerURL, "", []int{http.StatusAccepted, http.StatusConflict}, "X-Broker-Admin-Token", operatorToken)
			retriggered++
		}
	}
}

func TestWorker_RetriggersTheJobsOfADeadHub(t *testing.T) {
	w := newFailSafeHubs(t)
	a, first := w.startNode("off")
	_, second := w.startNode("off")
	worker, third := w.startNode("worker", "MESSAGEHUB_BROKER_RETRIGGER_URL="+second, "MESSAGEHUB_BROKER_RATIONAL_DELAY=1s")
	w.createChannel(first)
	w.awaitShared(second, third, first)
	a.kill()
	killed := time.Now()
	w.broadcast(second)
	w.awaitAll()
	t.Logf("all consumers had the message %v after the kill", time.Since(killed).Round(time.Millisecond))
	worker.await(t, "re-triggered overdue jobs of the broker")
	require.NotContains(t, worker.stderrText(), "cannot be re-triggered")
}
