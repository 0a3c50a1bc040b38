package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const stoppedActor = "5790001330552"

// longestActor has the maximum length of a name.
var longestActor = strings.Repeat("longest-", 8)

// openBundle is the open bundle of stoppedActor, and deadQueue is a queue with
// dead letters.
const (
	openBundle = "0190b5c0-0000-4000-8000-00000000abcd"
	deadQueue  = "dataavailable"
)

// deadBodies are messages that the hub cannot store.
var deadBodies = []string{`{`, `{"id": "<script>alert(1)</script>", "recipient": 5790001330552}`, `[1`, "\xff\x00", `{"to": "\u202e\u05e9\u05dc\u05d5\u05dd"}`}

// prepareMailboxes creates the data that the pages show: an actor with an open bundle, an actor with
// the longest name, and dead letters.
func prepareMailboxes(t *testing.T, hub *server) {
	t.Helper()
	hub.announceEvents(t, stoppedActor, 7)
	hub.announceEvents(t, longestActor, 2)
	hub.callAPI(t, http.MethodGet, "/v1/peek?bundleId="+openBundle, stoppedActor, nil)
	hub.sendDeadLetters(t)
}

// sendDeadLetters sends messages that the hub cannot store, and waits until they are dead letters.
func (s *server) sendDeadLetters(t *testing.T) {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://"+s.bus+";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.WithoutCancel(t.Context()))
	sender, err := client.NewSender(deadQueue, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range deadBodies {
		kind, id := "application/json", fmt.Sprintf(`message <b>%d</b> "of" \u05e9\u05dc\u05d5\u05dd`, i+1)
		if err := sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(body), ContentType: &kind, MessageID: &id, ApplicationProperties: map[string]any{"<i>": `"planted"`}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	until := time.Now().Add(30 * time.Second)
	for strings.Count(s.runCommand(t, "", "dead-letters", "list", deadQueue, "--json"), `"sequenceNumber"`) < len(deadBodies) {
		if time.Now().After(until) {
			t.Fatal("the messages are no dead letters after 30 s")
		}
	}
}

// announceEvents sends events for an actor, as a domain does.
func (s *server) announceEvents(t *testing.T, actor string, n int) {
	t.Helper()
	var events []map[string]any
	for i := range n {
		events = append(events, map[string]any{
			"id": fmt.Sprintf("0190b5c0-%04x-7000-8000-%012x", len(actor), i+1), "recipient": actor, "origin": "TimeSeries", "contentType": "measured-data",
			"documentType": "NotifyValidatedMeasureData", "supportsBundling": true, "weight": 1, "payload": map[string]any{"kwh": i},
		})
	}
	s.callAPI(t, http.MethodPost, "/v1/data-available", actor, events)
}

// callAPI calls the hub's API for an actor.
func (s *server) callAPI(t *testing.T, method, path, actor string, body any) {
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
