package cosmos

import (
	"context"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// Where several cabinets wait, the choice of a Peek needs the first number of each. If a Save
// brings events to a cabinet in which none waits, the head notes which of them is the first: the
// front of the cabinet. It is a fact that never changes, so a reader may use it whenever it is
// about the event just behind the gate, and needs no entry then. Without it, each such Save would
// have to raise the entry of the drawer: a tenth of what the events of a small batch cost.

// A front is the number of an event in its cabinet, counted from 1, and its number in the
// mailbox. The zero value is of no event.
type front [2]int64

// maxFronts is how many cabinets a recipient may have for new fronts to be noted: each makes the
// head, which every Save writes, 25 bytes longer. With more cabinets, entries are raised.
const maxFronts = 128

// frontBehind returns the number of the first event behind a position if that is the front, else
// 0.
func (c received) frontBehind(at position) domain.Sequence {
	if c.Front[0] == 0 || c.Front[0] != at.Total+1 || domain.Sequence(c.Front[1]) <= at.Sequence {
		return 0
	}
	return domain.Sequence(c.Front[1])
}

// frontsOf returns the parts of a plan whose first events become fronts: those that fill a
// drawer in which no event waits. It returns nil if the choice reads no entries, or if the head
// would become too large.
func (w *recipientWriter) frontsOf(wasEmpty []bool) []bool {
	if !w.r.usesEntries() || len(w.head.Cabinets) > maxFronts {
		return nil
	}
	return slices.Clone(wasEmpty)
}

// dropFront removes the front of a cabinet, which is wrong. The choice reads entries then.
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
