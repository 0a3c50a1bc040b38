package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Add implements [repository.Bundles]. It fails with Invalid if the bundle has events that its run has
// not yielded. If the caller has not set the time of opening, the store sets it.
func (s *Store) Add(ctx context.Context, bundle domain.Bundle, of repository.Run) (domain.Bundle, error) {
	if err := ctx.Err(); err != nil {
		return domain.Bundle{}, fmt.Errorf("add bundle: %w", err)
	}
	run, ok := of.(*eventRange)
	if !ok || run.store != s {
		return domain.Bundle{}, domain.Errorf(domain.Invalid, "add bundle: its run is of another store")
	}
	if err := run.checkBundle(&bundle); err != nil {
		return domain.Bundle{}, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(bundle.Cabinet.Recipient)
	gate := r.ensureGate(bundle.Group)
	switch {
	case r.used[bundle.ID]:
		return domain.Bundle{}, repository.ErrBundleIDInUse
	case gate.generation != run.generation || gate.open != nil:
		return domain.Bundle{}, domain.Errorf(domain.Conflict, "add bundle: group %s has moved on", bundle.Group)
	}
	if bundle.Opened.IsZero() {
		bundle.Opened = s.opts.Clock()
	}
	if bundle.Peeked.State = ""; !bundle.Peeked.Sampled {
		bundle.Peeked = domain.TraceContext{}
	}
	r.used[bundle.ID] = true
	gate.open, gate.requested = cloneBundle(&bundle), run.groups
	gate.lastPeek, gate.failingSince = latestTime(gate.lastPeek, bundle.Opened), time.Time{}
	gate.generation++
	s.setState(r, gate.open, repository.BundleOpen)
	return bundle, nil
}

// checkBundle checks that b consists of events that the run has yielded.
func (r *eventRange) checkBundle(b *domain.Bundle) error {
	switch {
	case b.Group != r.Group() || b.Cabinet != r.Cabinet():
		return domain.Errorf(domain.Invalid, "add bundle: it is of another group or cabinet than its run")
	case b.Count < 1 || b.Count > r.yielded:
		return domain.Errorf(domain.Invalid, "add bundle: count: want 1 to %d, the events that the run has yielded, got %d", r.yielded, b.Count)
	case b.First != r.events[0].Sequence || b.Last != r.events[b.Count-1].Sequence:
		return domain.Errorf(domain.Invalid, "add bundle: it says that its events are %d to %d, but they are %d to %d",
			b.First, b.Last, r.events[0].Sequence, r.events[b.Count-1].Sequence)
	}
	return nil
}

// Find implements [repository.Bundles].
func (s *Store) Find(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (domain.Bundle, repository.Run, error) {
	if err := ctx.Err(); err != nil {
		return domain.Bundle{}, nil, fmt.Errorf("find bundle: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(recipient)
	if r.frozen {
		return domain.Bundle{}, nil, repository.ErrFrozen
	}
	gate, err := r.gateOf(id)
	if err != nil {
		return domain.Bundle{}, nil, err
	}
	c := r.cabinets[gate.open.Cabinet]
	return *cloneBundle(gate.open), s.newRange(r, c, s.opts.Groups.All(), c.waitingEvents()[:gate.open.Count]), nil
}

// Acknowledge implements [repository.Bundles].
func (s *Store) Acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (repository.Acknowledged, error) {
	if err := ctx.Err(); err != nil {
		return repository.Acknowledged{}, fmt.Errorf("acknowledge: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(recipient)
	if r.frozen {
		return repository.Acknowledged{}, repository.ErrFrozen
	}
	gate, err := r.gateOf(id)
	if err != nil {
		return repository.Acknowledged{}, err
	}
	if gate.open.IsUnanswered() {
		return repository.Acknowledged{}, repository.ErrUnanswered
	}
	b := gate.closeBundle(r)
	gate.lastDequeue = s.opts.Clock()
	s.setState(r, b, repository.BundleDequeued)
	s.setExpiry(r, b)
	return repository.Acknowledged{HasNotice: s.addNotices(r, b), Bundle: *b, Remaining: r.groupsBacklog(gate.requested)}, nil
}

// gateOf returns the gate whose open bundle is id.
func (r *storedRecipient) gateOf(id domain.BundleID) (*storedGate, error) {
	for _, gate := range r.gates {
		if gate.open != nil && gate.open.ID == id {
			return gate, nil
		}
	}
	return nil, domain.Errorf(domain.NotFound, "bundle %s is not open for this actor", id)
}

// closeBundle closes the open bundle of the gate, and returns the bundle.
func (g *storedGate) closeBundle(r *storedRecipient) *domain.Bundle {
	b := g.open
	r.cabinets[b.Cabinet].acknowledged += b.Count
	g.closed = append(g.closed, closedBundle{b, g.requested})
	g.open = nil
	g.generation++
	return b
}

// cloneBundle returns a deep copy of b.
func cloneBundle(b *domain.Bundle) *domain.Bundle {
	c := *b
	c.DocumentTypes = slices.Clone(b.DocumentTypes)
	return &c
}
