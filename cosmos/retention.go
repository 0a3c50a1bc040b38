package cosmos

import (
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Acknowledged events are retained for a while, so that a repeated event is recognized as a duplicate and
// a bundle can be replayed. After that time a sweep removes whole drawers. Two members of the head decide
// which: the floor states below which ordinal drawers may have been removed, so that a reader does not
// mistake a removed drawer for one that is not visible yet; the milestones state since when drawers are
// known to be acknowledged, which no other member of head or gate records.
//
// A drawer that fills slowly would never be removed: its newest event is always younger than the
// retention. So the drawer at a gate's position is closed whenever a milestone is due, up to four times
// in the retention, and the next Save begins another drawer. If the events of a cabinet are acknowledged
// soon, the store retains events for at most one and a half times the retention, even if events are rare.
// Closing a drawer removes no event: a closed drawer is retained until all its events are acknowledged
// and a milestone above the drawer is old enough.
//
// Floors and milestones have a fence, an id that changes with them, and are patched on condition of the
// fence. So a Save in flight continues: its commit is refused once, finds its intent in the head, and is
// repeated on the current head. The head is replaced only to close a drawer or to remove a cabinet, and
// never while an intent fills that cabinet.
//
// A Replay moves a gate back. It reads the gate, moves the fence, and then replaces the gate. If a sweep
// read the retention before the fence moved, the fence refuses the write of the sweep. If it read the
// retention later, it proves the gate with a write, which makes the write of the Replay fail. So no floor
// rises above events that are unacknowledged again.
//
// The list of ids of a bundle and its content are in the folder of its first drawer. The folder exists as
// long as the bundle is open or can be reopened:
//
//   - While it is open, the position of its gate is before its first event, and no floor rises above
//     the drawer of a position.
//   - After it is closed, a sweep makes the milestone that covers its first drawer, and the floor rises
//     when that milestone is as old as the retention. The bundle expires before that, apart from
//     differences between clocks.
//   - A Replay does not depend on clocks. It is refused if the floor is above the first drawer, and its
//     fence removes the milestones above that drawer. So the floor stays until the bundle is closed
//     again, which restarts the retention.
//   - A released bundle is never reopened. Its events are delivered in another bundle, which begins in
//     the same drawer.
//   - With an unlimited retention no floor rises and no bundle expires.
//
// An object that is stored in a folder after its drawer was removed is never deleted, and no document
// refers to the object. This can happen if a Peek that lost its race was paused for longer than the
// retention.

// retained is the retention of a cabinet: which drawers exist, and since when drawers are acknowledged.
type retained struct {
	Floor      int         `json:"floor,omitempty"`      // drawers with a smaller ordinal were removed, or a sweep is removing them
	Cleared    int         `json:"cleared,omitempty"`    // drawers with a smaller ordinal were removed
	Closed     string      `json:"closed,omitempty"`     // set until it is removed: the drawer that was filled last when the floor rose above it; it may have no document
	Milestones []milestone `json:"milestones,omitempty"` // oldest first

	Unknown client.UnknownMembers `json:",embed"`
}

// A milestone notes when every drawer below an ordinal was first seen acknowledged.
type milestone struct {
	Below int `json:"below"`
	// Filled is 0 unless the milestone includes the drawer that was being filled. In that case it is the
	// number of events that the cabinet had received; if the cabinet has received more events since, the
	// milestone does not apply to that drawer.
	Filled int64 `json:"filled,omitempty"`
	At     int64 `json:"at"` // Unix time in ms

	Unknown client.UnknownMembers `json:",embed"`
}

// milestonesPerGrace is the maximum number of milestones in a grace period. An event that is acknowledged
// just after a milestone waits for the next milestone, a quarter of the period later.
const milestonesPerGrace = 4

// acknowledgedBelow returns the ordinal below which all drawers are acknowledged.
func acknowledgedBelow(last cabinetState, at position) int {
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

// advanceTo returns the retention at now, computed from t: with a milestone for the acknowledged drawers,
// and with the floor raised to the milestones that are older than grace. last is the state of the cabinet
// in the head, and at is the position of the gate. With a stale gate, drawers are only retained longer.
func (t retained) advanceTo(last cabinetState, at position, now time.Time, grace time.Duration) retained {
	below := acknowledgedBelow(last, at)
	next := retained{Floor: max(t.Floor, 1), Cleared: t.Cleared, Closed: t.Closed, Unknown: t.Unknown}
	latest := next.Floor
	for _, m := range t.Milestones {
		if m.Filled != 0 && m.Filled != last.Total {
			m.Filled, m.Below = 0, m.Below-1
		}
		if m.Below > below { // the gate was moved back: the retention of these drawers begins when it passes them again
			m.Filled, m.Below = 0, below
		}
		if m.At > now.Add(grace/milestonesPerGrace).UnixMilli() {
			m.At = now.UnixMilli() // a node with a fast clock made the milestone
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

// A retentionPlan is the change of a head that a sweep plans.
type retentionPlan struct {
	of        map[cabinetName]retained
	raised    map[domain.Group]bool // groups in which a floor rises; their gates must be proved before the write
	closed    []cabinetName         // cabinets whose last drawer the plan closes: no later Save fills it
	isChanged bool                  // the plan changes the state in the head

	removed []cabinetName // cabinets without a document, which the plan removes

	flushed []cabinetName // the cabinets in closed whose tails must be flushed before the write
}

// planRetention plans the retention at now from a head and gates, which may be stale. It closes drawers
// only if mayClose is true, and removes cabinets only if mayRemove is true.
//
// A drawer is closed if the position of its gate is in the drawer and a milestone is due. With a gate that
// has moved since, a drawer is closed too late; with a gate that was read before a Replay, a drawer is
// closed in which events wait again. Closing removes no event, so the gate is not proved.
func planRetention(h *head, gates map[domain.Group]*gate, groups domain.Groups, now time.Time, grace time.Duration, mayClose, mayRemove bool) (*retentionPlan, error) {
	p := &retentionPlan{of: make(map[cabinetName]retained, len(h.Cabinets)), raised: make(map[domain.Group]bool)}
	for name, last := range h.Cabinets {
		recipient, err := domain.ParseActorID(h.PartitionKey)
		if err != nil {
			return nil, err
		}
		cabinet, err := cabinetOf(recipient, name)
		if err != nil {
			return nil, err
		}
		group, err := groups.GroupOf(cabinet.Origin)
		if err != nil {
			return nil, err
		}
		before, at := h.cabinetRetention(name), gates[group].positionIn(name, last)
		if mayRemove && before.isGone(last) && !gates[group].Frozen && !h.isFilling(name) {
			p.removed = append(p.removed, name)
			p.isChanged = true
			continue
		}
		mayClose := mayClose && !h.isFilling(name)
		if mayClose && last.Drawer != "" && at.Ordinal == last.Ordinal && before.isDue(now, grace) {
			if len(last.Tail) > 0 { // the ids of events in the tail must be retained as long as ids in pages
				p.flushed = append(p.flushed, name)
			}
			last.Drawer, last.Fill, last.Paged, last.Tail, last.Saves = "", 0, 0, nil, nil
			p.closed = append(p.closed, name)
			p.isChanged = true
		}
		next := before.advanceTo(last, at, now, grace)
		if next.Floor > last.Ordinal && last.Drawer != "" {
			if mayClose && before.Closed == "" { // the gate is in front of the head, and the drawer was not closed by its age
				next.Closed = last.Drawer
				p.closed = append(p.closed, name)
			} else {
				next.Floor = max(before.Floor, last.Ordinal) // the drawer may not be closed now; a later sweep closes it
			}
		}
		if next.Floor > max(before.Floor, 1) {
			p.raised[group] = true
		}
		if !next.isEqual(before) {
			p.isChanged = true
		}
		if next.Floor > 1 || len(next.Milestones) > 0 || len(next.Unknown) > 0 {
			p.of[name] = next
		}
	}
	return p, nil
}
