package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const stoppedActor = "5790001330552"

// longestActor has as many characters as a name may have.
var longestActor = strings.Repeat("longest-", 8)

// prepare gives the hub what the pages show: an actor with an open bundle, and one with the longest name.
func prepare(t *testing.T, hub *server) {
	t.Helper()
	hub.announce(t, stoppedActor, 7)
	hub.announce(t, longestActor, 2)
	hub.call(t, http.MethodGet, "/v1/peek", stoppedActor, nil)
}

// announce sends events for an actor, as a domain does.
func (s *server) announce(t *testing.T, actor string, n int) {
	t.Helper()
	var events []map[string]any
	for i := range n {
		events = append(events, map[string]any{
			"id": fmt.Sprintf("0190b5c0-%04x-7000-8000-%012x", len(actor), i+1), "recipient": actor, "origin": "TimeSeries", "contentType": "measured-data",
			"documentType": "NotifyValidatedMeasureData", "supportsBundling": true, "weight": 1, "payload": map[string]any{"kwh": i},
		})
	}
	s.call(t, http.MethodPost, "/v1/data-available", actor, events)
}

// call calls the hub's API for an actor.
func (s *server) call(t *testing.T, method, path, actor string, body any) {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Actor-Id", actor)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %v\n%s", method, path, response.StatusCode, err, answer)
	}
}
