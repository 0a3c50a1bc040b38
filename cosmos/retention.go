package cosmos

import (
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Acknowledged events are kept for a while, so that a repeated event is recognized as a duplicate and a
// bundle can be replayed. Then whole drawers are removed. That is decided by two members of the head:
// the floor says which drawers may be gone, so that a reader does not mistake "gone" for "not visible
// yet"; the milestones say since when drawers are known to be acknowledged, which neither head nor gate
// records otherwise.
//
// A drawer that fills slowly would never be removed: its newest event is always younger than the
// retention. So the drawer of a gate's position is closed whenever a milestone is due, up to four times
// in the retention, and the next Save begins another drawer. If the events of a cabinet are
// acknowledged soon, the store has at most those of one and a half times the retention, however few
// they are. To close a drawer removes nothing: a closed drawer is retained until all its events are
// acknowledged and a milestone above it is old enough.
//
// Floors and milestones are patched on condition of a fence of their own, so that a Save in flight
// continues: its commit is refused once, finds its intent in the head, and is repeated on the current
// head. The head is replaced only to close a drawer, and never while an intent fills that cabinet.
//
// A Replay moves a gate back. It reads the gate, moves the fence, and then replaces the gate. A sweep
// that has read the retention before is refused by the fence; a sweep that has read it afterwards
// proves the gate, and the write of the Replay fails. So no floor rises above events that are
// unacknowledged again.
//
// The list of ids of a bundle and its content are in the folder of its first drawer. They exist as long
// as the bundle is open or can be reopened:
//
//   - While it is open, the position of its gate is before its first event, and no floor rises above
//     the drawer of a position.
//   - After it is closed, the milestone that covers its first drawer is made, and the floor rises when
//     that milestone is as old as the retention. By then the bundle has expired, apart from differences
//     between clocks.
//   - A Replay does not depend on clocks. It is refused if the floor is above the first drawer, and its
//     fence removes the milestones above that drawer. So the floor stays until the bundle is closed
//     again, and then the retention begins again.
//   - A released bundle is never reopened. Its events are delivered in another bundle, which begins in
//     the same drawer.
//   - With an unlimited retention no floor rises and no bundle expires.
//
// An object that is put into a folder after its drawer was removed stays there, without a document that
// refers to it. That can happen if a Peek has lost its race and was paused for longer than the
// retention.

// retained states what is still kept of a cabinet.
type retained struct {
	Floor      int         `json:"floor,omitempty"`      // drawers with a smaller ordinal are gone, or about to go
	Cleared    int         `json:"cleared,omitempty"`    // drawers with a smaller ordinal are gone
	Closed     string      `json:"closed,omitempty"`     // the drawer that was filled last when the floor rose above it, until it is removed; it may have no document
	Milestones []milestone `json:"milestones,omitempty"` // oldest first

	Unknown client.UnknownMembers `json:",embed"`
}

// A milestone notes when every drawer below an ordinal was first seen acknowledged.
type milestone struct {
	Below int `json:"below"`
	// Filled is the number of events that the cabinet had received if the milestone includes the drawer
	// that was being filled, otherwise 0. If the cabinet has received more since, the milestone does
	// not apply to that drawer.
	Filled int64 `json:"filled,omitempty"`
	At     int64 `json:"at"` // Unix time in ms

	Unknown client.UnknownMembers `json:",embed"`
}

// milestonesPerGrace is the maximum number of milestones in a grace period: an event that is
// acknowledged just after a milestone waits for the next one, a quarter of the period later.
const milestonesPerGrace = 4

// acknowledgedBelow returns the ordinal below which all drawers are acknowledged.
func acknowledgedBelow(last received, at position) int {
	if at.Sequence >= last.Sequence {
		return last.Ordinal + 1
	}
	return at.Ordinal
}

// isDue reports whether the next milestone may be made at now.
func (t retained) isDue(now time.Time, grace time.Duration) bool {
	n := len(t.Milestones)
	return n == 0 || now.UnixMilli()-t.Milestones[n-1].At >= (grace/milestonesPerGrace).Milliseconds()
}

// advanceTo returns the retention that follows t at now: with a milestone for the acknowledged drawers,
// and with the floor raised by the milestones that are older than grace. last is the state of the
// cabinet in the head, at the position of the gate. With an old gate, drawers only stay longer.
func (t retained) advanceTo(last received, at position, now time.Time, grace time.Duration) retained {
	below := acknowledgedBelow(last, at)
	next := retained{Floor: max(t.Floor, 1), Cleared: t.Cleared, Closed: t.Closed, Unknown: t.Unknown}
	latest := next.Floor
	for _, m := range t.Milestones {
		if m.Filled != 0 && m.Filled != last.Total {
			m.Filled, m.Below = 0, m.Below-1
		}
		if m.Below > below { // the gate was moved back: events that it passes again are kept from then on
			m.Filled, m.Below = 0, below
		}
		if m.At > now.Add(grace/milestonesPerGrace).UnixMilli() {
			m.At = now.UnixMilli() // made by a clock that was fast
		}
		if m.Below > latest {
			next.Milestones = append(next.Milestones, m)
			latest = m.Below
		}
	}
	if below > latest && next.isDue(now, grace) {
		m := milestone{Below: below, At: now.UnixMilli()}
		if last.Drawer != "" && below > last.Ordinal {
			m.Filled = last.Total
		}
		next.Milestones = append(next.Milestones, m)
	}
	for len(next.Milestones) > 0 && next.Milestones[0].Below <= below && now.UnixMilli()-next.Milestones[0].At >= grace.Milliseconds() {
		next.Floor, next.Milestones = next.Milestones[0].Below, next.Milestones[1:]
	}
	return next
}

// isEqual reports whether t and u are equal.
func (t retained) isEqual(u retained) bool {
	if max(t.Floor, 1) != max(u.Floor, 1) || max(t.Cleared, 1) != max(u.Cleared, 1) || t.Closed != u.Closed || len(t.Milestones) != len(u.Milestones) {
		return false
	}
	for i := range t.Milestones {
		if !t.Milestones[i].isEqual(u.Milestones[i]) {
			return false
		}
	}
	return true
}

// isEqual reports whether m and o are equal, apart from members that this version does not know.
func (m milestone) isEqual(o milestone) bool {
	return m.Below == o.Below && m.Filled == o.Filled && m.At == o.At
}

// A retention is a change that a sweep plans for the head.
type retention struct {
	of     map[cabinetName]retained
	raised map[domain.Group]bool // groups with a floor that rises: their gates have to be proved before
	closed []cabinetName         // cabinets whose last drawer is closed, so that no later Save fills it
	fresh  bool                  // it differs from the state in the head

	removed []cabinetName // cabinets that have nothing left

	flushed []cabinetName // the cabinets in closed whose tails must be flushed before
}

// planRetention plans from a head and gates, which may be stale, what to keep at now. It closes drawers
// only if mayClose is true, and removes cabinets only if mayRemove is.
//
// A drawer is closed if the position of its gate is in it and a milestone is due. With a gate that was
// read before it moved, a drawer is closed too late; with a gate that was read before a Replay, a
// drawer is closed in which events wait again. Neither removes an event, so the gate is not proved.
func planRetention(h *head, gates map[domain.Group]*gate, groups domain.Groups, now time.Time, grace time.Duration, mayClose, mayRemove bool) (*retention, error) {
	p := &retention{of: make(map[cabinetName]retained, len(h.Cabinets)), raised: make(map[domain.Group]bool)}
	for name, last := range h.Cabinets {
		recipient, err := domain.ParseActorID(h.PartitionKey)
		if err != nil {
			return nil, err
		}
		cabinet, err := cabinetOf(recipient, name)
		if err != nil {
			return nil, err
		}
		group, err := groups.Of(cabinet.Origin)
		if err != nil {
			return nil, err
		}
		before, at := h.cabinetRetention(name), gates[group].positionIn(name, last)
		if mayRemove && before.isGone(last) && !gates[group].Frozen && !h.isFilling(name) {
			p.removed = append(p.removed, name)
			p.fresh = true
			continue
		}
		mayClose := mayClose && !h.isFilling(name)
		if mayClose && last.Drawer != "" && at.Ordinal == last.Ordinal && before.isDue(now, grace) {
			if len(last.Tail) > 0 { // its ids must be known for as long as those in pages
				p.flushed = append(p.flushed, name)
			}
			last.Drawer, last.Fill, last.Paged, last.Tail, last.Saves = "", 0, 0, nil, nil
			p.closed = append(p.closed, name)
			p.fresh = true
		}
		next := before.advanceTo(last, at, now, grace)
		if next.Floor > last.Ordinal && last.Drawer != "" {
			if mayClose && before.Closed == "" { // the gate is in front of the head: age has not closed the drawer
				next.Closed = last.Drawer
				p.closed = append(p.closed, name)
			} else {
				next.Floor = max(before.Floor, last.Ordinal) // a later sweep closes that drawer
			}
		}
		if next.Floor > max(before.Floor, 1) {
			p.raised[group] = true
		}
		if !next.isEqual(before) {
			p.fresh = true
		}
		if next.Floor > 1 || len(next.Milestones) > 0 || len(next.Unknown) > 0 {
			p.of[name] = next
		}
	}
	return p, nil
}
