package inspect

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Get returns a delivery. It fails with NotFound if the reader may not read the subscription, or if the stream never
// contained the entry.
func (s *Service) Get(ctx context.Context, reader Reader, id domain.DeliveryID) (*Delivery, error) {
	n, err := s.readSnapshot(ctx, reader, id.Subscription)
	if err != nil {
		return nil, err
	}
	return s.getDelivery(ctx, n, id)
}

func (s *Service) getDelivery(ctx context.Context, n *snapshot, id domain.DeliveryID) (*Delivery, error) {
	r, err := s.ports.Cursors.Retry(ctx, id.Subscription.Cursor(), id.Entry)
	var d Delivery
	switch open, isOpen := n.findOpen(id.Entry); {
	case err == nil:
		d = n.fromRetry(&r)
	case domain.KindOf(err) != domain.NotFound:
		return nil, err
	case isOpen:
		d = n.fromOpen(open)
	case id.Entry.Number >= n.standing.Position(id.Entry.Priority).Number:
		return s.getUnreached(ctx, n, id)
	default:
		return s.getEnded(ctx, n, id)
	}
	e, err := s.readEntry(ctx, n, d.position)
	if e != nil {
		d.addEvent(e)
	}
	return &d, err
}

// getUnreached returns the delivery for an entry that the cursor has not reached.
func (s *Service) getUnreached(ctx context.Context, n *snapshot, id domain.DeliveryID) (*Delivery, error) {
	end, err := s.readEnds(ctx, n)
	if err != nil {
		return nil, err
	}
	if id.Entry.Number >= end[id.Entry.Priority] {
		return nil, notFound(id)
	}
	at := n.standing.Position(id.Entry.Priority)
	at.EntryID = id.Entry
	d := n.newDelivery(at, Waiting)
	if !n.isNear(id.Entry) {
		return &d, nil
	}
	found, err := s.ports.Streams.Read(ctx, n.stream, at, 1)
	switch {
	case err != nil:
		return nil, err
	case found.Start.Number > id.Entry.Number:
		d.State = Expired
	case len(found.Entries) > 0 && found.Entries[0].Position.EntryID == id.Entry:
		d.addEvent(&found.Entries[0])
		if !n.matches(&found.Entries[0]) {
			d.State = Filtered
		}
	}
	return &d, nil
}

// getEnded returns the delivery for an entry that the cursor has passed. The delivery must have ended and must not be a
// dead letter.
func (s *Service) getEnded(ctx context.Context, n *snapshot, id domain.DeliveryID) (*Delivery, error) {
	if x := n.standing.Expiry(id.Entry); x != nil {
		d := n.newDelivery(n.searchStart(id.Entry), Expired)
		d.Reason = x.Reason()
		return &d, nil
	}
	d, isDelivered := n.fromRecent(id.Entry)
	e, err := s.searchEntry(ctx, n, id.Entry)
	if err != nil {
		return nil, err
	}
	if e != nil {
		d.addEvent(e)
	}
	if isDelivered {
		return &d, nil
	}
	d.State, d.Inferred = Ended, true
	switch {
	case e == nil:
	case isBefore(e, n.definition):
		return nil, notFound(id)
	case len(d.History) > 0: // the last attempt failed, and the dead letter is no longer stored
	case !n.matches(e):
		d.State = Filtered
	case n.now.Sub(e.Published) < repository.DeadLetterRetention: // a failed delivery would still have its dead letter
		d.State = Delivered
	}
	return &d, nil
}

// isBefore reports whether an entry was published before a subscription was created.
func isBefore(e *repository.Entry, d *repository.Definition) bool {
	return !e.Published.IsZero() && e.Published.Before(d.Created)
}

func notFound(id domain.DeliveryID) error {
	return domain.Errorf(domain.NotFound, "there is no delivery %s", id)
}

// readEnds returns the number of the next entry in each priority.
func (s *Service) readEnds(ctx context.Context, n *snapshot) (end [domain.Priorities]int64, err error) {
	found, err := s.ports.Streams.End(ctx, n.stream)
	for _, p := range found.Positions {
		end[p.Priority] = p.Number
	}
	return end, err
}
