package cosmos

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A sweep removes an empty cabinet, so that head and gates name only cabinets with events, however many
// kinds of events a recipient has received. A removal takes three writes, in three sweeps:
//
//  1. The drawers below the floor are deleted, and the head stores the floor in Cleared.
//  2. The head is replaced without the cabinet if the floor is above the last ordinal, all drawers below
//     the floor are cleared and no drawer is being filled. Such a floor means that the gate is past every
//     event of the cabinet, and the floor never decreases. So no bundle of the cabinet is open, and a
//     Replay of a closed one is refused. The replacement is conditional on the etag of the head that was
//     read, so a Save to the cabinet and its removal exclude each other. A node with an older head in
//     memory fails its next write, and reads the head again.
//  3. The gate is replaced without its position in the cabinet.
//
// After a crash between these writes, the next sweep continues.
//
// A removed cabinet that receives events again continues after the highest ordinal and the highest total
// of all removed cabinets (BaseOrdinal, BaseTotal). Its drawers have new ids. So a lower ordinal
// identifies all remains of the cabinet from before its removal: the position of a gate that was not
// replaced yet, the ranges of an old bundle, an entry, and a drawer created by a Save or a flush that was
// paused since before the removal. Such a drawer is not read. It remains until the floor of the new
// cabinet passes it.
//
// A gate without a position may be compared with a stale head, in which the events of the removed cabinet
// seem to wait. So the gate stores the highest number among the removed positions (gate.Removed): in a
// cabinet without a position, all numbers up to it are acknowledged. The same write gives a position to
// each cabinet of the head that has no position in the gate. A cabinet that is missing in the head is
// newer than the head, and its numbers are higher. So the rule holds with any version of the head, however
// stale.
//
// While an intent begins a new cabinet, no cabinet is removed: the ordinals in the intent were planned
// before the removal.

// isGone reports whether all events and drawers of a cabinet have been removed.
func (t retained) isGone(last cabinetState) bool {
	return last.Drawer == "" && t.Closed == "" && t.Floor > last.Ordinal && t.Cleared >= t.Floor
}

// allowsRemoval reports whether cabinets may be removed from h. The first removal raises the format of the
// head, so it waits until the head has no intent that an older version may have written.
func (h *head) allowsRemoval() bool {
	if h.Intent == nil {
		return true
	}
	for i := range h.Intent.Parts {
		if _, ok := h.Cabinets[h.Intent.Parts[i].Cabinet]; !ok {
			return false
		}
	}
	return h.RemovedOrdinal > 0
}

// cabinetState returns the state of a cabinet in h, or the initial state of a new cabinet.
func (h *head) cabinetState(name cabinetName) cabinetState {
	if last, ok := h.Cabinets[name]; ok {
		return last
	}
	return cabinetState{
		Ordinal: h.RemovedOrdinal, Total: h.RemovedTotal, BaseOrdinal: h.RemovedOrdinal, BaseTotal: h.RemovedTotal,
	}
}

// lastEver returns a state of a cabinet whose numbers are at least as high as in every earlier version of
// h.
func (h *head) lastEver(name cabinetName) cabinetState {
	last := h.cabinetState(name)
	if last.Total == last.BaseTotal {
		last.Sequence = h.Watermark
	}
	return last
}

// cabinetFloor returns the lowest retained ordinal of a cabinet.
func (h *head) cabinetFloor(name cabinetName) int {
	return max(h.Retention[name].Floor, h.cabinetState(name).BaseOrdinal+1)
}

// cabinetRetention returns the retention of a cabinet. All drawers up to its BaseOrdinal count as
// removed.
func (h *head) cabinetRetention(name cabinetName) retained {
	t := h.Retention[name]
	if base := h.Cabinets[name].BaseOrdinal; base > 0 {
		t.Floor, t.Cleared = max(t.Floor, base+1), max(t.Cleared, base+1)
	}
	return t
}

// positionIn returns the position of g in a cabinet whose state in a head is last.
func (g *gate) positionIn(name cabinetName, last cabinetState) position {
	at, ok := g.At[name]
	if !ok {
		at.Sequence = g.Removed
	}
	return last.sinceBase(at)
}

// sinceBase returns at, unless the cabinet was removed after at was stored. Then it returns the position
// before the first event since the removal.
func (c cabinetState) sinceBase(at position) position {
	if c.BaseOrdinal > 0 && at.Ordinal <= c.BaseOrdinal {
		at.Ordinal, at.Slot, at.Total, at.NextSaved = c.BaseOrdinal+1, 0, c.BaseTotal, 0
	}
	return at
}

// forgetCabinets returns g without its positions in cabinets that were removed from h, or nil if g has no
// such positions. isMember reports whether a cabinet belongs to the group of g.
func (g *gate) forgetCabinets(h *head, isMember func(cabinetName) bool, writeID string) *gate {
	var forgotten []cabinetName
	for name, at := range g.At {
		// A cabinet that was created after h has an ordinal above RemovedOrdinal.
		if _, ok := h.Cabinets[name]; !ok && h.RemovedOrdinal > 0 && at.Ordinal <= h.RemovedOrdinal {
			forgotten = append(forgotten, name)
		}
	}
	if len(forgotten) == 0 {
		return nil
	}
	c := g.confirm(writeID)
	for name, last := range h.Cabinets {
		if _, ok := g.At[name]; !ok && last.Sequence > g.Removed && isMember(name) {
			c.At[name] = g.positionIn(name, last)
		}
	}
	for _, name := range forgotten {
		c.Removed = max(c.Removed, c.At[name].Sequence)
		delete(c.At, name)
	}
	return c
}

// forgetRemoved removes from the gates the positions in cabinets that were removed from h.
func (c *call) forgetRemoved(ctx context.Context, h *head, gates map[domain.Group]*gate) error {
	for group, g := range gates {
		isMember := func(name cabinetName) bool {
			of, err := c.r.groupOf(name)
			return err == nil && of == group
		}
		next := g.forgetCabinets(h, isMember, c.r.client.NewID())
		if next == nil {
			continue
		}
		// A crash after this write leaves the remaining gates unchanged. The next sweep replaces them.
		etag, err := c.Put(ctx, c.r.db.bundles, g.Recipient, g.ID, g.ETag, next)
		if client.IsRefused(err) {
			return client.ErrStale
		}
		if err != nil {
			return err
		}
		next.ETag = etag
		gates[group] = next
	}
	return nil
}
