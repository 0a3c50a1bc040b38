package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// executeBundleAction executes an operator's action on a bundle. do makes the change and returns the
// bundle for the record.
func (s *Store) executeBundleAction(ctx context.Context, id domain.ActorID, what string, by repository.AdminAction, do func(r *storedRecipient) (*domain.Bundle, error)) error {
	return s.executeAction(ctx, id, what, by, func(r *storedRecipient, record *repository.Record) error {
		b, err := do(r)
		if b != nil {
			record.Group, record.Bundle, record.Events = b.Group, b.ID, b.Count
		}
		return err
	})
}

// executeAction checks the operator and the reason of an action, executes the action, and records it
// unless do fails.
func (s *Store) executeAction(ctx context.Context, id domain.ActorID, what string, by repository.AdminAction, do func(r *storedRecipient, record *repository.Record) error) error {
	if err := cmp.Or(by.Check(), ctx.Err()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(id)
	record := repository.Record{AdminAction: by, What: what}
	if err := do(r, &record); err != nil {
		return err
	}
	record.When = s.opts.Clock()
	r.records = append(r.records, record)
	return nil
}

// Release implements [repository.Admin].
func (s *Store) Release(ctx context.Context, actor domain.ActorID, id domain.BundleID, by repository.AdminAction) error {
	return s.executeBundleAction(ctx, actor, "release", by, func(r *storedRecipient) (*domain.Bundle, error) {
		gate, err := r.gateOf(id)
		if err != nil {
			return nil, err
		}
		b := gate.open
		gate.open = nil
		gate.generation++
		s.setState(r, b, repository.BundleReleased)
		s.setExpiry(r, b)
		return b, nil
	})
}

// Skip implements [repository.Admin].
func (s *Store) Skip(ctx context.Context, actor domain.ActorID, id domain.BundleID, by repository.AdminAction) error {
	return s.executeBundleAction(ctx, actor, "skip", by, func(r *storedRecipient) (*domain.Bundle, error) {
		gate, err := r.gateOf(id)
		if err != nil {
			return nil, err
		}
		b := gate.closeBundle(r)
		s.setState(r, b, repository.BundleSkipped)
		s.setExpiry(r, b)
		return b, nil
	})
}

// Replay implements [repository.Admin].
func (s *Store) Replay(ctx context.Context, actor domain.ActorID, group domain.Group, by repository.AdminAction) (domain.Bundle, error) {
	var again domain.Bundle
	err := s.executeBundleAction(ctx, actor, "replay", by, func(r *storedRecipient) (*domain.Bundle, error) {
		gate := r.ensureGate(group)
		switch n := len(gate.closed); {
		case gate.open != nil:
			return nil, domain.Errorf(domain.Conflict, "bundle %s is open in group %s; dequeue, release or skip it first", gate.open.ID, group)
		case n == 0:
			return nil, domain.Errorf(domain.NotFound, "no bundle was closed in group %s that could be replayed", group)
		default:
			last := gate.closed[n-1]
			gate.closed = gate.closed[:n-1]
			gate.open, gate.requested = last.bundle, last.requested
			gate.generation++
			s.setState(r, last.bundle, repository.BundleOpen)
			delete(r.expiring, last.bundle.ID)
			r.cabinets[last.bundle.Cabinet].acknowledged -= last.bundle.Count
			again = *cloneBundle(last.bundle)
			return last.bundle, nil
		}
	})
	return again, err
}

// Lose makes the events of a cabinet with numbers from first to last unreadable, as after a loss of
// data: their content no longer exists, and a Save accepts their ids again. It is for tests.
func (s *Store) Lose(key domain.CabinetKey, first, last domain.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(key.Recipient)
	c := r.cabinets[key]
	if c.lost == nil {
		c.lost = make(map[domain.Sequence]bool)
	}
	for i := range c.events {
		if e := &c.events[i]; first <= e.Sequence && e.Sequence <= last {
			c.lost[e.Sequence] = true
			delete(r.received, e.ID)
		}
	}
}

// Abandon implements [repository.Admin].
func (s *Store) Abandon(ctx context.Context, key domain.CabinetKey, by repository.AdminAction) (repository.Loss, error) {
	loss := repository.Loss{Cabinet: key}
	err := s.executeAction(ctx, key.Recipient, "abandon", by, func(r *storedRecipient, record *repository.Record) error {
		c := r.cabinets[key]
		if c == nil || len(c.waitingEvents()) == 0 {
			return domain.Errorf(domain.NotFound, "nothing waits in cabinet %v", key)
		}
		gate := r.ensureGate(c.group)
		if gate.open != nil {
			return domain.Errorf(domain.Conflict, "bundle %s is open in group %s; dequeue, release or skip it first", gate.open.ID, c.group)
		}
		for _, e := range c.waitingEvents() {
			if !c.lost[e.Sequence] {
				break
			}
			loss.Events++
		}
		if loss.Events == 0 {
			return domain.Errorf(domain.Conflict, "the first event that waits in cabinet %v can be read", key)
		}
		if c.acknowledged > 0 {
			loss.First = c.events[c.acknowledged-1].Sequence
		}
		loss.First++
		c.acknowledged += int(loss.Events)
		loss.Last = c.events[c.acknowledged-1].Sequence
		if c.acknowledged < len(c.events) {
			loss.Last = c.events[c.acknowledged].Sequence - 1
		}
		gate.closed = nil
		gate.generation++
		record.Lost = &loss
		return nil
	})
	if err != nil {
		return repository.Loss{}, err
	}
	return loss, nil
}

// Freeze implements [repository.Admin].
func (s *Store) Freeze(ctx context.Context, actor domain.ActorID, by repository.AdminAction) error {
	return s.executeBundleAction(ctx, actor, "freeze", by, func(r *storedRecipient) (*domain.Bundle, error) { return nil, r.freezeGates(actor, true) })
}

// Thaw implements [repository.Admin].
func (s *Store) Thaw(ctx context.Context, actor domain.ActorID, by repository.AdminAction) error {
	return s.executeBundleAction(ctx, actor, "thaw", by, func(r *storedRecipient) (*domain.Bundle, error) { return nil, r.freezeGates(actor, false) })
}

// freezeGates freezes or thaws all gates. It also increments the generation of each gate, so that the
// bundle of a concurrent Peek is refused.
func (r *storedRecipient) freezeGates(actor domain.ActorID, frozen bool) error {
	if len(r.cabinets) == 0 {
		return domain.Errorf(domain.NotFound, "actor %s has no mailbox: nothing was ever saved for it", actor)
	}
	r.frozen = frozen
	for _, g := range r.gates {
		g.generation++
	}
	return nil
}

// Records implements [repository.Admin].
func (s *Store) Records(ctx context.Context, recipient domain.ActorID, limit int) ([]repository.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	records := slices.Clone(s.recipientOf(recipient).records)
	slices.Reverse(records)
	return records[:min(len(records), limit)], nil
}

// Inspect implements [repository.Admin]. This store has no drawers.
func (s *Store) Inspect(ctx context.Context, recipient domain.ActorID) (repository.Inspection, error) {
	if err := ctx.Err(); err != nil {
		return repository.Inspection{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(recipient)
	in := repository.Inspection{Recipient: recipient, Frozen: r.frozen, Reserved: r.last, Watermark: r.last}
	waiting := make(map[domain.Group]int64)
	for _, c := range r.cabinets {
		found := repository.InspectedCabinet{
			Cabinet: c.key, Group: c.group, Received: int64(len(c.events)), Acknowledged: int64(c.acknowledged), Floor: 1,
		}
		if n := len(c.events); n > 0 {
			found.Last = c.events[n-1].Sequence
		}
		if c.acknowledged > 0 {
			found.AcknowledgedThrough = c.events[c.acknowledged-1].Sequence
		}
		waiting[c.group] += found.Received - found.Acknowledged
		in.Cabinets = append(in.Cabinets, found)
	}
	slices.SortFunc(in.Cabinets, func(a, b repository.InspectedCabinet) int {
		return cmp.Or(cmp.Compare(a.Cabinet.Origin.String(), b.Cabinet.Origin.String()), cmp.Compare(a.Cabinet.ContentType.String(), b.Cabinet.ContentType.String()))
	})
	for _, group := range s.opts.Groups.All() {
		found := repository.InspectedGroup{Group: group, Generation: int64(r.ensureGate(group).generation), Waiting: waiting[group]}
		if open := r.ensureGate(group).open; open != nil {
			found.Open = cloneBundle(open)
		}
		in.Groups = append(in.Groups, found)
	}
	return in, nil
}
