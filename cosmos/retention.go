package cosmos

import (
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Acknowledged events are kept for a while, so that what is sent again is still
// known and a bundle can be replayed. Then whole drawers go. That rests on two
// numbers in the head: the floor says which drawers may be gone, so that a reader
// does not take "gone" for "not seen yet"; the milestones say since when drawers are
// known to be acknowledged, for neither head nor gate remembers that.
//
// A drawer that is filled slowly would never be removed: the newest event in it is always
// younger than the retention. So the drawer of a gate's position is closed whenever a
// milestone is due, up to four times in the retention, and the next Save begins another.
// What is stored of a cabinet whose events are acknowledged soon is at most that of one and
// a half times the retention, however few they are. Closing removes nothing: a drawer that
// is closed is retained until all of it is acknowledged and a milestone above it is old
// enough.
//
// Floors and milestones are patched on condition of a fence of their own, so that a Save in
// flight continues: its commit is refused once, finds its intent in the head, and is made on
// the head as it is then. The head is replaced only to close a drawer, and not while an
// intent fills that cabinet.
//
// A Replay moves a gate back. It reads the gate, moves the fence, and then replaces the
// gate. A sweep that has read the retention before is refused by the fence; one that has
// read it after proves the gate, and the write of the Replay fails. So no floor rises above
// events that are unacknowledged again.
//
// The list of ids of a bundle and its content are in the folder of its first drawer. They
// exist as long as the bundle is open or can be reopened:
//
//   - While it is open, the position of its gate is before its first event, and no floor
//     rises above the drawer of a position.
//   - After it is closed, the milestone that covers its first drawer is made, and the floor
//     rises when that is as old as the retention. By then the bundle has expired, apart from
//     differences between clocks.
//   - A Replay does not depend on clocks. It is refused if the floor is above the first
//     drawer, and its fence removes the milestones that are. So the floor stays until the
//     bundle is closed again, which begins the retention again.
//   - A released bundle is never reopened. Its events are delivered in another bundle, which
//     begins in the same drawer.
//   - With an unlimited retention no floor rises and no bundle expires.
//
// An object that is put into a folder after its drawer was removed stays there, without a
// document that refers to it: a Peek can put one if it has lost its race and was paused for
// longer than the retention.

// retained is what is still kept of a cabinet.
type retained struct {
	Floor      int         `json:"floor,omitempty"`      // drawers with a smaller ordinal are gone, or about to go
	Cleared    int         `json:"cleared,omitempty"`    // drawers with a smaller ordinal are gone
	Closed     string      `json:"closed,omitempty"`     // the drawer below the floor that was last when the floor rose, until it is removed; it may have no document
	Milestones []milestone `json:"milestones,omitempty"` // oldest first

	Unknown client.UnknownMembers `json:",embed"`
}

// A milestone notes when every drawer below an ordinal was first seen acknowledged.
type milestone struct {
	Below int `json:"below"`
	// Filled is how many events the cabinet had received if the milestone takes in the
	// drawer that was being filled, else 0. If more have come, it says nothing of
	// that drawer.
	Filled int64 `json:"filled,omitempty"`
	At     int64 `json:"at"` // Unix time in ms

	Unknown client.UnknownMembers `json:",embed"`
}

// milestonesPerGrace is the maximum number of milestones in a grace period: what is
// acknowledged just after one waits for the next, a quarter of the period later.
const milestonesPerGrace = 4

// acknowledgedBelow returns the ordinal below which the gate has let everything
// through.
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

// advanceTo returns the retention that follows t at now, when the head says last and the gate
// at of the cabinet: with a milestone for what is acknowledged, and with its floor
// raised to the milestones that are older than grace. An old gate makes things stay
// longer, and nothing worse.
func (t retained) advanceTo(last received, at position, now time.Time, grace time.Duration) retained {
	below := acknowledgedBelow(last, at)
	next := retained{Floor: max(t.Floor, 1), Cleared: t.Cleared, Closed: t.Closed, Unknown: t.Unknown}
	latest := next.Floor
	for _, m := range t.Milestones {
		if m.Filled != 0 && m.Filled != last.Total {
			m.Filled, m.Below = 0, m.Below-1
		}
		if m.Below > below { // the gate was moved back: what it passes again is kept from then on
			m.Filled, m.Below = 0, below
		}
		if m.At > now.Add(grace/milestonesPerGrace).UnixMilli() {
			m.At = now.UnixMilli() // made by a clock that was ahead
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

// isEqual reports whether t and u say the same.
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

// isEqual reports whether m and o say the same, apart from what this version does not know.
func (m milestone) isEqual(o milestone) bool {
	return m.Below == o.Below && m.Filled == o.Filled && m.At == o.At
}

// A retention is what a sweep wants the head to say.
type retention struct {
	of     map[cabinetName]retained
	raised map[domain.Group]bool // groups with a floor that rises: their gates have to be proved first
	closed []cabinetName         // cabinets whose last drawer is closed, so that no Save fills it from now on
	fresh  bool                  // it differs from what the head says

	removed []cabinetName // cabinets of which nothing is left

	flushed []cabinetName // of closed: those whose tails must be flushed before
}

// planRetention decides from a head and gates, either of which may be old, what
// to keep at now. It closes drawers only if mayClose is true, and removes cabinets
// only if mayRemove is.
//
// A drawer is closed if the position of its gate is in it and a milestone is due. A gate that was read
// before it moved closes a drawer too late; a gate that was read before a Replay closes a drawer
// in which events wait again. Neither removes an event, so the gate is not proved.
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
			if len(last.Tail) > 0 { // whose ids must be known for as long as those in pages
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
				next.Floor = max(before.Floor, last.Ordinal) // that one another time
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
