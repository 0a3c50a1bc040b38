package cosmos

import (
	"context"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// If events wait in several cabinets, a Peek must know the first waiting number of each cabinet to choose
// between them. When a Save adds events to a cabinet without waiting events, the head stores the first new
// event as the front of the cabinet. A front never becomes wrong. So whenever the front is the event just
// after the gate, a reader may use it instead of an entry. Without fronts, each such Save would have to
// raise the entry of the drawer, for a tenth of the cost of a small batch of events.

// A front is the number of an event in its cabinet, counted from 1, and its number in the mailbox. The
// zero value means no event.
type front [2]int64

// maxFronts is the number of cabinets up to which a head stores fronts: each front adds 25 bytes to the
// head, which every Save writes. For a recipient with more cabinets, Saves raise entries instead.
const maxFronts = 128

// frontBehind returns the number of the front if it is the event just after a position, otherwise 0.
func (c cabinetState) frontBehind(at position) domain.Sequence {
	if c.Front[0] == 0 || c.Front[0] != at.Total+1 || domain.Sequence(c.Front[1]) <= at.Sequence {
		return 0
	}
	return domain.Sequence(c.Front[1])
}

// frontsOf reports for each part of a plan whether its first event becomes a front. It becomes a front if
// no event waits in the drawer of the part. frontsOf returns nil if a Peek reads no entries, or if the
// head would become too large.
func (w *recipientWriter) frontsOf(wasEmpty []bool) []bool {
	if !w.r.usesEntries() || len(w.head.Cabinets) > maxFronts {
		return nil
	}
	return slices.Clone(wasEmpty)
}

// dropFront removes a wrong front of a cabinet. A Peek then reads the entries of the cabinet.
func (c *call) dropFront(ctx context.Context, recipient domain.ActorID, name cabinetName) error {
	h, err := c.readHead(ctx, recipient)
	if err != nil {
		return err
	}
	next := h.clone()
	last := next.Cabinets[name]
	last.Front = front{}
	next.Cabinets[name] = last
	next.setWriteID(c.r.client.NewID())
	_, err = c.Put(ctx, c.r.db.catalog, h.PartitionKey, headID, h.etag, next)
	return err
}

// isFront reports whether the first event of a part becomes a front.
func (p *savePlan) isFront(part int) bool { return p.fronts != nil && p.fronts[part] }
