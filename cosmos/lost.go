package cosmos

import (
	"context"
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A page that is gone, or cannot be decoded, is lost with its events. A Peek then opens no bundle in
// its cabinet, and continues with the others. A Save continues without the ids of the page: an event of
// the page that is sent again is stored as a new one. An operator abandons the lost slots; see
// abandon.go.
//
// That a page is gone is proved by a write that changes nothing and names the page by its id. Pages
// follow each other without a gap, so there must be a page that begins where the page before the
// missing slot ends, unless a sweep has removed the drawer. The missing slot may be in the middle of
// it.

// mayBeLost reports whether a lost page may have caused err.
func mayBeLost(err error) bool {
	return errors.Is(err, client.ErrNotYetVisible) || domain.KindOf(err) == domain.Damaged
}

// skipLost moves d past the lost slots at its position, where readNext has failed with err, and returns
// these slots. If they are not proved to be lost, it returns err.
func (d *drawerReader) skipLost(ctx context.Context, err error) (slotRange, error) {
	if err := d.proveLost(ctx, err); err != nil {
		return slotRange{}, err
	}
	lost, looks := slotRange{Drawer: d.slots.Drawer, Ordinal: d.slots.Ordinal, From: d.at}, 1
	if d.call.r.db.ReadsMayBeStale() {
		looks = client.MaxMissing // so that one stale read does not make a later page count as lost
	}
	lost.To = d.pagesEnd()
	for look := range looks {
		if look > 0 && !d.call.Pause(ctx, 0) {
			return slotRange{}, err
		}
		next, nerr := d.nextSoundPage(ctx)
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

// proveLost returns nil if the page at the position of d, where readNext has failed with err, is lost.
// Otherwise it returns err, or the reason why it could not find out.
func (d *drawerReader) proveLost(ctx context.Context, err error) error {
	if !mayBeLost(err) || d.isDone() || d.at >= d.pagesEnd() {
		return err
	}
	if !errors.Is(err, client.ErrNotYetVisible) {
		return nil // the page was read, and cannot be decoded
	}
	start, xerr := d.pageStart(ctx)
	if xerr != nil {
		return xerr
	}
	for _, slot := range slices.Compact([]int{d.at, start}) { // the first slot, too, in case the page before is lost as well
		there, xerr := d.call.documentExists(ctx, d.call.r.db.cabinets, d.slots.Drawer, pageID(slot))
		switch {
		case xerr != nil:
			return xerr
		case there:
			return err // the read was stale
		}
	}
	return d.call.SuspectContainers(ctx)
}

// pageStart returns the first slot of the page that contains slot d.at, which is the slot where the page before
// it ends. A stale read may return the first slot of an earlier page.
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

// nextSoundPage returns the first slot from d.at on whose page can be decoded, or the end of the pages.
func (d *drawerReader) nextSoundPage(ctx context.Context) (int, error) {
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

// confirmFloor returns client.ErrStale unless the current floor of a cabinet is that of h. If it is,
// no sweep has removed the pages.
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
	// This write is conditional on a moved fence. A crash after it leaves a head with the same meaning
	// as before.
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

// whyUnreadable returns a lostError if the first event of a candidate's run is lost. err is the error
// of reading it.
func (cand *peekCandidate) whyUnreadable(ctx context.Context, c *call, r *eventRange, err error) error {
	if len(r.parts) == 0 || !mayBeLost(err) {
		return err
	}
	if !c.uncached.Swap(true) {
		return client.ErrStale // the drawers in memory may be those of a store that has lost writes since
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

// whatToDoLost is the advice in a log line about a lost page.
const whatToDoLost = "restore the page, or abandon its events by messagehub queue abandon"

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
