package receivers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// A cloudEvent is an event in the form of CloudEvents.
type cloudEvent struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Data        json.RawMessage `json:"data"`
}

// A Sender publishes events of one size.
type Sender struct {
	Client *http.Client
	URL    string // URL of a hub or a relay
	Bytes  int    // size of an event's data
}

// Send publishes a batch of events with the ids, and records their due time at s.
func (p *Sender) Send(ctx context.Context, s *Server, due time.Time, ids ...string) error {
	for _, id := range ids {
		s.Due(id, due)
	}
	return p.SendUncounted(ctx, ids...)
}

// SendUncounted publishes a batch of events whose calls are not counted.
func (p *Sender) SendUncounted(ctx context.Context, ids ...string) error {
	data, _ := json.Marshal(strings.Repeat("x", max(0, p.Bytes-2))) // a text
	events := make([]cloudEvent, len(ids))
	for i, id := range ids {
		events[i] = cloudEvent{"1.0", id, "/bench", "measured", data}
	}
	text, err := json.Marshal(events)
	if err != nil {
		return err
	}
	return postEvents(ctx, p.Client, p.URL+"/v1/events", "application/cloudevents-batch+json", text, http.StatusAccepted)
}

// secret signs the calls of hubs and relays.
const secret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// Subscribe creates a subscription of an actor at a hub, with a secret that
// signs its calls.
func (p *Sender) Subscribe(ctx context.Context, callback string) error {
	text, err := json.Marshal(map[string]string{"callback_url": callback, "hmac_secret_key": secret})
	if err != nil {
		return err
	}
	return postEvents(ctx, p.Client, p.URL+"/v1/subscriptions", "application/json", text, http.StatusCreated)
}

func postEvents(ctx context.Context, client *http.Client, url, contentType string, text []byte, want int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Actor-Id", "bench")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("POST %s: %s: %s", url, resp.Status, body)
	}
	return err
}
