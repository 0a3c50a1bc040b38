package demo

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// An actorClient peeks and dequeues for one actor, and records the bundles that
// it receives.
type actorClient struct {
	hub      *hubclient.Client
	actor    string
	ledger   energymarket.Ledger
	tally    *tally
	onBundle func(events int) // called for each confirmed bundle
}

// A tally sums the measurements of all clients of one actor.
type tally struct {
	mu              sync.Mutex
	events, bundles int
	bytes           int64
	peeks, dequeues []time.Duration

	largest     int // number of events in the largest bundle
	largestPeek time.Duration
}

func (t *tally) addBundle(events int, bytes int64, peek, dequeue time.Duration) {
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

// percentileOf returns the p-th percentile of durations.
func percentileOf(durations []time.Duration, p int) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[(len(sorted)*p+99)/100-1]
}

// drainGroup peeks and dequeues until the group has no data. If group is "", it
// drains all groups.
func (a *actorClient) drainGroup(ctx context.Context, group string) error {
	for {
		asked, started := a.ledger.Now(), time.Now()
		id, body, err := a.hub.Peek(ctx, a.actor, hubclient.PeekOptions{Group: group})
		if err != nil || id == "" {
			return err
		}
		peek := time.Since(started)
		if err := a.ledger.ReceiveBundle(a.actor, id, body, asked); err != nil {
			return err
		}
		began := time.Now()
		confirmed, err := a.hub.Dequeue(ctx, a.actor, id)
		if err != nil {
			return err
		}
		answered := time.Now()
		a.ledger.Confirm(a.actor, id, confirmed)
		events := 0
		if confirmed {
			events = a.ledger.Size(a.actor, id)
			a.onBundle(events)
		}
		a.tally.addBundle(events, int64(len(body)), peek, answered.Sub(began))
	}
}
