package cosmos

import (
	"context"
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A page that does not exist, or cannot be decoded, is lost with its events. A Peek opens no bundle in the
// cabinet of a lost page, and continues with the other cabinets. A Save continues without the ids of the
// page: an event of the page that is sent again is stored as a new event. An operator abandons the lost
// slots; see abandon.go.
//
// To prove that a page does not exist, a write that changes nothing names the page by its id. The pages of
// a drawer follow each other without a gap. So, unless a sweep has removed the drawer, a page must begin
// where the page before the missing slot ends. The missing slot may be in the middle of that page.

// mayBeLost reports whether a lost page may have caused err.
func mayBeLost(err error) bool {
	return errors.Is(err, client.ErrNotYetVisible) || domain.KindOf(err) == domain.Damaged
}

// skipLost moves d past the lost slots at its position and returns them. err is the error of readNext at
// that position. If the loss cannot be proved, skipLost returns err.
func (d *drawerReader) skipLost(ctx context.Context, err error) (slotRange, error) {
	if err := d.proveLost(ctx, err); err != nil {
		return slotRange{}, err
	}
	lost, attempts := slotRange{Drawer: d.slots.Drawer, Ordinal: d.slots.Ordinal, From: d.at}, 1
	if d.call.r.db.ReadsMayBeStale() {
		attempts = client.MaxMissing // one stale read must not make a later page count as lost
	}
	lost.To = d.pagesEnd()
	for attempt := range attempts {
		if attempt > 0 && !d.call.Pause(ctx, 0) {
			return slotRange{}, err
		}
		next, nerr := d.nextDecodablePage(ctx)
		if nerr != nil {
			return slotRange{}, nerr
		}
		lost.To = min(lost.To, next)
	}
	if lost.To == lost.From {
		return slotRange{}, err
	}
	d.at, d.query, d.size = lost.To, nil, firstPages
	return lost, nil
}

// proveLost returns nil if the page at the position of d is lost. Otherwise it returns err, the error of
// readNext at this position. If a request of proveLost fails, it returns the error of this request.
func (d *drawerReader) proveLost(ctx context.Context, err error) error {
	if !mayBeLost(err) || d.isDone() || d.at >= d.pagesEnd() {
		return err
	}
	if !errors.Is(err, client.ErrNotYetVisible) {
		return nil // the page exists but cannot be decoded
	}
	start, xerr := d.pageStart(ctx)
	if xerr != nil {
		return xerr
	}
	for _, slot := range slices.Compact([]int{d.at, start}) { // start is another slot if the page before d.at is lost, too
		there, xerr := d.call.documentExists(ctx, d.call.r.db.cabinets, d.slots.Drawer, pageID(slot))
		switch {
		case xerr != nil:
			return xerr
		case there:
			return err // the page exists: the read that failed was stale
		}
	}
	return d.call.SuspectContainers(ctx)
}

// pageStart returns the first slot of the page that contains slot d.at: the end of the page before it. A
// stale read may return the first slot of an earlier page.
func (d *drawerReader) pageStart(ctx context.Context) (int, error) {
	q := d.call.Query(d.call.r.db.cabinets, d.slots.Drawer, "SELECT c.id, c.v, c.until FROM c WHERE c.until <= @at ORDER BY c.until DESC",
		azcosmos.QueryParameter{Name: "@at", Value: d.at})
	items, err := q.Next(ctx, 1)
	if err != nil || len(items) == 0 {
		return 0, err
	}
	var before struct {
		drawerItem
		Until int `json:"until"`
	}
	err = d.call.Decode(items[0], d.slots.Drawer, &before)
	return before.Until, err
}

// nextDecodablePage returns the first slot at or after d.at whose page can be decoded, or the end of the pages.
func (d *drawerReader) nextDecodablePage(ctx context.Context) (int, error) {
	q := d.call.Query(d.call.r.db.cabinets, d.slots.Drawer, "SELECT * FROM c WHERE c.until > @from ORDER BY c.until",
		azcosmos.QueryParameter{Name: "@from", Value: d.at})
	for !q.IsDone() {
		items, err := q.Next(ctx, firstPages)
		if err != nil {
			return 0, err
		}
		for _, item := range items {
			var p drawerPage
			err := d.call.Decode(item, d.slots.Drawer, &p)
			if err == nil {
				err = p.decodeEvents(d.cabinet, func(int, *storedEvent) bool { return true })
			}
			if err == nil {
				return min(max(p.Slot, d.at), d.pagesEnd()), nil
			}
			if domain.KindOf(err) == domain.NewerFormat {
				return 0, err
			}
		}
	}
	return d.pagesEnd(), nil
}

// confirmFloor returns client.ErrStale if the floor of a cabinet has changed since h was read. If the
// floor is the same, no sweep has removed the pages.
func (c *call) confirmFloor(ctx context.Context, h *head, name cabinetName) error {
	if !c.r.db.ReadsMayBeStale() {
		now, err := c.readHeadByKey(ctx, h.PartitionKey)
		if err == nil && now.cabinetFloor(name) != h.cabinetFloor(name) {
			err = client.ErrStale
		}
		return err
	}
	moved := "IS_DEFINED(c.fence)"
	if h.Fence != "" {
		moved = "c.fence != '" + h.Fence + "'"
	}
	// This write is applied only if the fence has moved. It changes no value, so a crash after this write
	// has no effect.
	ops := client.NewPatch(headDocument, moved)
	ops.AppendIncrement("/undone", 0)
	switch err := c.Patch(ctx, c.r.db.catalog, h.PartitionKey, headID, ops, &head{}); {
	case client.IsNotFound(err), err == nil:
		return client.ErrStale
	case client.IsRefused(err):
		return nil
	default:
		return err
	}
}

// A lostError is the Damaged error of a cabinet whose next events are lost.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// isLost reports whether err is a lostError.
func isLost(err error) bool {
	_, ok := errors.AsType[*lostError](err)
	return ok
}

// whyUnreadable returns a lostError if the first event of run r is lost, otherwise err, the error of
// reading that event.
func (cand *peekCandidate) whyUnreadable(ctx context.Context, c *call, r *eventRange, err error) error {
	if len(r.parts) == 0 || !mayBeLost(err) {
		return err
	}
	if !c.uncached.Swap(true) {
		return client.ErrStale // the drawers in memory may be from before the store lost writes
	}
	s := r.parts[0].slotRange
	if perr := c.readDrawer(cand.cabinet, s, r.tail).proveLost(ctx, err); perr != nil {
		return perr
	}
	if errors.Is(err, client.ErrNotYetVisible) {
		if ferr := c.confirmFloor(ctx, cand.head, nameOf(cand.cabinet)); ferr != nil {
			return ferr
		}
	}
	// err is not wrapped: a wrapped client.ErrStale would be retried.
	return &lostError{domain.Errorf(domain.Damaged,
		"the page of slot %d of drawer %d (%s) of %s is lost, and nothing behind it is peeked until an operator abandons it (messagehub queue abandon): %v",
		s.From, s.Ordinal, s.Drawer, cabinetKey(cand.cabinet), err)}
}

// lostPageAction is the action that a log line about a lost page recommends.
const lostPageAction = "restore the page, or abandon its events by messagehub queue abandon"

// reportLost reports the candidates whose next events are lost.
func (c *call) reportLost(recipient domain.ActorID, candidates []*peekCandidate, groups []domain.Group) {
	for _, cand := range candidates {
		if cand.isLost() {
			c.r.lostPages.add(recipient, cand.lost.Error())
			return
		}
	}
	if len(groups) == len(c.r.opts.Groups.All()) {
		c.r.lostPages.remove(recipient)
	}
}
