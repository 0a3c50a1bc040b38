package ingest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// A faultyHub is a hub whose Ingest can fail, before or after it stores events.
type faultyHub struct {
	*hub.Hub
	before, after atomic.Pointer[func(context.Context, []domain.Event) error]
	calls         atomic.Int64

	mu       sync.Mutex
	saves    [][]domain.EventID // ids of the events in each successful save
	accepted int                // number of events that the hub has accepted
	changed  chan struct{}      // closed at the next change of accepted; nil if nothing waits for it
}

type storeFault = func(context.Context, []domain.Event) error

func (h *faultyHub) Ingest(ctx context.Context, events []domain.Event) (hub.IngestResult, error) {
	h.calls.Add(1)
	if f := h.before.Load(); f != nil {
		if err := (*f)(ctx, events); err != nil {
			return hub.IngestResult{}, err
		}
	}
	ingested, err := h.Hub.Ingest(ctx, events)
	h.mu.Lock()
	h.accepted += ingested.Accepted
	if h.changed != nil && ingested.Accepted > 0 {
		close(h.changed)
		h.changed = nil
	}
	h.mu.Unlock()
	if f := h.after.Load(); f != nil && err == nil {
		err = (*f)(ctx, events)
	}
	if err == nil {
		h.mu.Lock()
		h.saves = append(h.saves, idsOf(events))
		h.mu.Unlock()
	}
	return ingested, err
}

// waitUntilStored waits until the hub has stored the given number of events.
func (s *ingestSite) waitUntilStored(events int) {
	s.Helper()
	for {
		s.hub.mu.Lock()
		if s.hub.accepted >= events {
			s.hub.mu.Unlock()
			return
		}
		if s.hub.changed == nil {
			s.hub.changed = make(chan struct{})
		}
		changed, accepted := s.hub.changed, s.hub.accepted
		s.hub.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(5 * time.Minute):
			require.Failf(s, "waited in vain for events", "%d of %d were stored", accepted, events)
		}
	}
}

// failWith returns a fault that always returns err.
func failWith(err error) *storeFault {
	f := func(context.Context, []domain.Event) error { return err }
	return &f
}

var errBroken = errors.New("the store is broken")
