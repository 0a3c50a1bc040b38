// Package hubtest runs a hub in memory for the tests of actors and domains:
//
//	hub := hubtest.Start(t)
//	hub.Announce("5790001330552", map[string]any{"kwh": 1.5})
//	err := hub.Client().Consume(ctx, "5790001330552", handle)
//
// The hub is the same as in production, with its engines, its limits and its HTTP API, and listens on a free
// loopback port. It needs no files and no other processes. When the test ends, the hub stops and loses its data.
//
// A test that uses this package links the whole hub. Programs should use only package hubclient.
package hubtest

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// AdminToken is the operators' token of a Hub.
const AdminToken = "token-of-the-operators" //nolint:gosec // of a hub of a test

// A Hub is a hub that runs until its test ends.
type Hub struct {
	URL string // base URL for actors, domains and operators, without a slash at the end

	t      testing.TB
	client *hubclient.Client
}

// Start starts a hub. It first calls the functions configure, which may change
// the settings. The hub stops when the test ends. If it cannot start, or stops
// with an error, the test fails.
func Start(t testing.TB, configure ...func(*config.Config)) *Hub {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.BusListen, cfg.BlobListen, cfg.InMemory = "127.0.0.1:0", "", "", true
	cfg.Admin.Token = AdminToken
	for _, change := range configure {
		change(&cfg)
	}
	n, err := node.Open(t.Context(), cfg, node.Options{})
	if err != nil {
		t.Fatalf("hubtest: start a hub: %v", err)
	}
	h := &Hub{URL: n.URL(), t: t}
	h.client = h.NewClient(hubclient.Options{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.Run(ctx); err != nil {
			t.Errorf("hubtest: the hub ended: %v", err)
		}
	})
	t.Cleanup(func() {
		h.client.Close() // otherwise the hub would wait for these connections
		cancel()
		running.Wait()
	})
	return h
}

// Client returns a client that can act as any actor and any domain.
func (h *Hub) Client() *hubclient.Client { return h.client }

// NewClient returns a client with these options for the hub.
func (h *Hub) NewClient(opts hubclient.Options) *hubclient.Client {
	h.t.Helper()
	opts.URL = h.URL
	client, err := hubclient.New(opts)
	if err != nil {
		h.t.Fatalf("hubtest: %v", err)
	}
	return client
}

// Announce announces an event for each payload to a recipient, in the order of
// the payloads, and returns the ids of the events. The events are from the
// domain TimeSeries and support bundling.
func (h *Hub) Announce(recipient string, payloads ...any) (ids []string) {
	h.t.Helper()
	events := make([]hubclient.Event, len(payloads))
	for i, payload := range payloads {
		text, err := json.Marshal(payload)
		if err != nil {
			h.t.Fatalf("hubtest: payload %d: %v", i, err)
		}
		events[i] = hubclient.Event{
			ID: uuid.NewString(), Recipient: recipient, Origin: "TimeSeries", ContentType: "measured-data",
			DocumentType: "NotifyValidatedMeasureData", SupportsBundling: true, Weight: int64(1 + len(text)>>10), Payload: text,
		}
		ids = append(ids, events[i].ID)
	}
	if _, err := h.client.Announce(h.t.Context(), events); err != nil {
		h.t.Fatalf("hubtest: %v", err)
	}
	return ids
}
