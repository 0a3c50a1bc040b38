package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A pushReceiver is a receiver that counts the calls for each event.
type pushReceiver struct {
	*httptest.Server
	failures int // number of calls for each event that are first answered with 503

	mu    sync.Mutex
	calls map[string]int // number of calls by event
	ids   map[string]string
	mixed []string // ids of events whose calls had different webhook ids
	more  chan struct{}
}

func newPushReceiver(t *testing.T, failures int) *pushReceiver {
	r := &pushReceiver{failures: failures, calls: make(map[string]int), ids: make(map[string]string), more: make(chan struct{}, 1)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *pushReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var n struct{ Event struct{ ID string } }
	if err := json.NewDecoder(req.Body).Decode(&n); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[n.Event.ID]++
	id := req.Header.Get("Webhook-Id")
	if before := r.ids[n.Event.ID]; before != "" && before != id {
		r.mixed = append(r.mixed, n.Event.ID)
	}
	r.ids[n.Event.ID] = id
	nudge(r.more)
	if r.calls[n.Event.ID] <= r.failures {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// countDelivered returns the number of delivered events, and the number of all
// calls. An event is delivered if it has caused more than failures calls.
func (r *pushReceiver) countDelivered() (events, calls int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.calls {
		calls += n
		if n > r.failures {
			events++
		}
	}
	return events, calls
}

// await waits until this number of events is delivered.
func (r *pushReceiver) await(t *testing.T, want int) {
	t.Helper()
	timeout := time.After(patience)
	for {
		got, _ := r.countDelivered()
		if got >= want {
			return
		}
		select {
		case <-r.more:
		case <-timeout:
			t.Fatalf("%d of %d events after %s", got, want, patience)
		}
	}
}

// TestPushLosesNothing kills a hub while events are published and delivered.
// One receiver fails twice for each event. Every event must be delivered to
// every receiver.
func TestPushLosesNothing(t *testing.T) {
	const (
		kills  = 4
		events = 60 // number of events between two kills
	)
	up, flaky := newPushReceiver(t, 0), newPushReceiver(t, 2)
	environ := []string{
		"MESSAGEHUB_PUSH_ALLOW=127.0.0.0/8", "MESSAGEHUB_PUSH_INSECURE_HTTP=true",
		"MESSAGEHUB_PUSH_DELAYS=0 0.02 0.05 0.1 0.2 0.5 0.5 0.5 0.5 0.5",
	}
	data := t.TempDir()
	published := 0
	for kill := 0; ; kill++ {
		h := spawnHubWith(t, environ, "--data", data, "--log-level", "warn")
		if err := h.waitReady(); err != nil {
			t.Fatal(err)
		}
		url := h.url(t)
		if kill == 0 {
			for _, r := range []*pushReceiver{up, flaky} {
				post(t, url+"/v1/subscriptions", "application/json", fmt.Sprintf(`{"callback_url":%q,"hmac_secret_key":"secret"}`, r.URL), http.StatusCreated)
			}
		}
		for range events {
			post(t, url+"/v1/events", "application/cloudevents+json",
				fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"/test","type":"made","data":%d}`, published, published), http.StatusAccepted)
			published++
		}
		if kill == kills {
			up.await(t, published)
			flaky.await(t, published)
			if err := h.stop(t, syscall.SIGTERM); err != nil {
				t.Errorf("after SIGTERM: %v\n%s", err, h.stderrText())
			}
			break
		}
		h.kill() // the hub is killed while calls are running and retries are waiting
	}
	for name, r := range map[string]*pushReceiver{"up": up, "flaky": flaky} {
		got, calls := r.countDelivered()
		t.Logf("%s: %d events, %d calls", name, got, calls)
		if limit := published*(r.failures+1) + kills*16; got != published || calls > limit {
			t.Errorf("%s: %d events with %d calls, want %d with at most %d", name, got, calls, published, limit)
		}
		if len(r.mixed) > 0 {
			t.Errorf("%s: events whose deliveries had several ids: %v", name, r.mixed)
		}
	}
}

// post sends a POST as an actor, and checks the status of the response.
func post(t *testing.T, url, contentType, body string, want int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Actor-Id", "an-actor")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		t.Fatalf("POST %s: %s, want %d", url, resp.Status, want)
	}
}
