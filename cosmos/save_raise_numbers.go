package cosmos

import (
	"context"
	"errors"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// raiseNumbers raises the numbers and totals of cabinets whose drawers are all sealed.
func (w *recipientWriter) raiseNumbers(ctx context.Context, c *call, lost map[cabinetName]position) error {
	next := w.head.clone()
	for name, at := range lost {
		next.Watermark = max(next.Watermark, at.Sequence)
		next.Reserved = max(next.Reserved, next.Watermark)
		if name == removedCabinets {
			continue
		}
		cabinet, err := cabinetOf(w.recipient, name)
		if err != nil {
			return err
		}
		last := next.cabinetState(name)
		last.Front = front{} // the number in the front may belong to a lost event
		at = last.sinceBase(at)
		waiting, sequence, err := c.countBehind(ctx, cabinet, last, next.cabinetFloor(name), at)
		if err != nil {
			return err
		}
		w.r.opts.Logger.ErrorContext(ctx, "the store has lost writes of a head: it continues above its gate and its drawers",
			"recipient", w.recipient.String(), "cabinet", name, "received", last.Total, "acknowledged", at.Total, "waiting", waiting)
		last.Sequence, last.Total, last.Raise = max(last.Sequence, sequence), at.Total+waiting, false
		next.Cabinets[name] = last
		next.Watermark = max(next.Watermark, last.Sequence)
		next.Reserved = max(next.Reserved, next.Watermark)
	}
	// If the node crashes before this write, the drawers are sealed, and Raise is set in the head. The
	// next writer repeats this write.
	if err := w.writeHead(ctx, c, next); err != nil {
		return asStale(err)
	}
	w.index = newIndex(w.recipient, w.r.indexLimit())
	w.r.known.forgetRecipient(w.recipient)
	w.r.metrics.repairs.WithLabelValues(raiseRepair).Add(float64(len(lost)))
	w.r.inFront.remove(w.recipient)
	return client.ErrStale
}

// countBehind returns the number of events in sealed drawers after a position, and an upper bound of
// their sequence numbers.
func (c *call) countBehind(ctx context.Context, cabinet domain.CabinetKey, last cabinetState, floor int, at position) (waiting int64, sequence domain.Sequence, err error) {
	from := max(at.Ordinal, floor)
	extents, err := c.readExtents(ctx, cabinet, last, from, 0)
	if err != nil {
		return 0, 0, err
	}
	if len(extents) != last.Ordinal-from+1 {
		return 0, 0, client.ErrNotYetVisible
	}
	sequence = at.Sequence
	for _, e := range extents {
		s := slotRange{Drawer: e.drawer, Ordinal: e.ordinal, To: e.limit}
		if e.ordinal == at.Ordinal {
			s.From = at.Slot
		}
		if s.From >= s.To {
			continue
		}
		waiting += int64(s.To - s.From)
		read := c.readDrawer(cabinet, s, nil)
		for !read.isDone() {
			events, err := read.readNext(ctx)
			if errors.Is(err, client.ErrNotYetVisible) || domain.KindOf(err) == domain.Damaged {
				break // a page is lost; a check reports it
			}
			if err != nil {
				return 0, 0, err
			}
			sequence = max(sequence, events[len(events)-1].Sequence)
		}
	}
	return waiting, max(sequence, at.Sequence+domain.Sequence(waiting)), nil
}
