package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
)

// An actorClient peeks and dequeues as an actor does, and tells a ledger.
type actorClient struct {
	hub    *client
	actor  string
	ledger energymarket.Ledger
	tally  *tally
	onward func(events int) // is told of each bundle that was confirmed
}

// A tally is what the clients of one actor went through.
type tally struct {
	mu              sync.Mutex
	events, bundles int
	bytes           int64
	peeks, dequeues []time.Duration

	largest     int // events of a bundle
	largestPeek time.Duration
}

func (t *tally) add(events int, bytes int64, peek, dequeue time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peeks = append(t.peeks, peek)
	t.dequeues = append(t.dequeues, dequeue)
	if events > 0 {
		t.events += events
		t.bytes += bytes
		t.bundles++
	}
	if events > t.largest {
		t.largest, t.largestPeek = events, peek
	}
}

// percentile returns the smallest duration that p percent of them do not exceed.
func percentile(of []time.Duration, p int) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[(len(sorted)*p+99)/100-1]
}

// drain peeks and dequeues at path until no data is left there.
func (a *actorClient) drain(ctx context.Context, path string) error {
	for {
		asked, started := a.ledger.Now(), time.Now()
		id, body, err := a.peek(ctx, path)
		if err != nil || id == "" {
			return err
		}
		peek := time.Since(started)
		if err := a.ledger.ReceiveBundle(a.actor, id, body, asked); err != nil {
			return err
		}
		began := time.Now()
		confirmed, err := a.dequeue(ctx, id)
		if err != nil {
			return err
		}
		answered := time.Now()
		a.ledger.Confirm(a.actor, id, confirmed)
		events := 0
		if confirmed {
			events = a.ledger.Size(a.actor, id)
			a.onward(events)
		}
		a.tally.add(events, int64(len(body)), peek, answered.Sub(began))
	}
}

// peek returns the id and the body of a bundle, or no id if there is no data.
func (a *actorClient) peek(ctx context.Context, path string) (string, []byte, error) {
	resp, err := a.hub.do(ctx, http.MethodGet, path, a.actor, nil)
	if err != nil {
		return "", nil, fmt.Errorf("peek of %s: %w", a.actor, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", nil, fmt.Errorf("peek of %s: the body broke off: %w", a.actor, err)
	}
	return resp.Header.Get("MessageId"), body, nil
}

// dequeue reports false if the bundle was not open for the actor any more.
func (a *actorClient) dequeue(ctx context.Context, id string) (bool, error) {
	resp, err := a.hub.do(ctx, http.MethodDelete, "/v1/dequeue/"+id, a.actor, nil)
	if refused, ok := errors.AsType[*problem](err); ok && refused.Status == http.StatusNotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("dequeue of bundle %s of %s: %w", id, a.actor, err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return true, errors.Join(err, resp.Body.Close())
}
