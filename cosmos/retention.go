package cosmos

import (
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Acknowledged events are retained for some time, so that repeated events are recognized as duplicates and
// bundles can be replayed. Then a sweep removes whole drawers. The head stores two values for each cabinet:
// drawers with an ordinal below the floor may have been removed, so that a reader does not mistake a
// removed drawer for one that is not visible yet; the milestones record since when drawers are known to be
// acknowledged.
//
// A drawer that fills slowly would never be removed, because its newest event is always younger than the
// retention. So the drawer at a gate's position is closed whenever a milestone is due, up to four times
// in the retention, and the next Save begins a new drawer. If the events of a cabinet are acknowledged
// soon, the store retains events for at most one and a half times the retention, even if events are rare.
// Closing a drawer removes no event: a closed drawer is retained until all its events are acknowledged
// and a milestone above the drawer is old enough.
//
// Each change of floors or milestones also changes an id in the head, the fence, and is a patch on
// condition of the fence. So a concurrent Save can continue: its commit is refused once, finds its intent
// in the head, and is repeated on the current head. The head is replaced only to close a drawer or to
// remove a cabinet, and never while an intent fills that cabinet.
//
// A Replay moves a gate back. It reads the gate, changes the fence, and then replaces the gate. If a sweep
// read the head before the fence changed, the write of the sweep is refused. If the sweep read the head
// later, it replaces the gate to confirm it, which makes the write of the Replay fail. So no floor rises
// above events that are unacknowledged again.
//
// The list of ids of a bundle and its content are in the folder of its first drawer. The folder exists as
// long as the bundle is open or can be reopened:
//
//   - While it is open, the position of its gate is before its first event, and no floor rises above
//     the drawer that contains the position of a gate.
//   - After it is closed, a sweep adds the milestone that covers its first drawer, and the floor rises
//     when that milestone is as old as the retention. The bundle expires earlier, apart from clock
//     differences.
//   - A Replay does not depend on clocks. It is refused if the floor is above the first drawer, and its
//     fence removes the milestones above that drawer. So the floor stays until the bundle is closed
//     again, which restarts the retention.
//   - A released bundle is never reopened. Its events are delivered in a new bundle, which begins in the
//     same drawer.
//   - With an unlimited retention, no floor rises and no bundle expires.
//
// An object that is stored in a folder after its drawer was removed is never deleted, and no document
// refers to the object. This can happen if a Peek whose bundle was not opened was paused for longer than
// the retention.

// retained is the retention state of a cabinet: which drawers exist, and when drawers were found to be
// acknowledged.
type retained struct {
	Floor      int         `json:"floor,omitempty"`      // drawers with a smaller ordinal were removed, or a sweep is removing them
	Cleared    int         `json:"cleared,omitempty"`    // drawers with a smaller ordinal were removed
	Closed     string      `json:"closed,omitempty"`     // id of the last drawer, if the floor is above it and it is not removed yet; it may have no document
	Milestones []milestone `json:"milestones,omitempty"` // oldest first

	Unknown client.UnknownMembers `json:",embed"`
}

// A milestone records when all drawers below an ordinal were first known to be acknowledged.
type milestone struct {
	Below int `json:"below"`
	// Filled is the number of events that the cabinet had received when the milestone included the drawer
	// that was being filled; otherwise it is 0. If the cabinet has received more events since, the
	// milestone does not apply to that drawer.
	Filled int64 `json:"filled,omitempty"`
	At     int64 `json:"at"` // Unix time in ms

	Unknown client.UnknownMembers `json:",embed"`
}

// milestonesPerGrace is the maximum number of milestones in a retention period. An event that is
// acknowledged just after a milestone is included in the next one, at least a quarter of the period later.
const milestonesPerGrace = 4

// acknowledgedBelow returns the ordinal below which all drawers are acknowledged.
func acknowledgedBelow(last cabinetState, at position) int {
	if at.Sequence >= last.Sequence {
		return last.Ordinal + 1
	}
	return at.Ordinal
}

// isDue reports whether the next milestone may be added at the time now.
func (t retained) isDue(now time.Time, grace time.Duration) bool {
	n := len(t.Milestones)
	return n == 0 || now.UnixMilli()-t.Milestones[n-1].At >= (grace/milestonesPerGrace).Milliseconds()
}

// advanceTo returns the retention state at the time now. It adds a milestone for the acknowledged
// drawers, and raises the floor to the milestones that are older than grace. last is the state of the
// cabinet in the head, and at is the position of the gate. If the gate is stale, drawers are only
// retained longer.
func (t retained) advanceTo(last cabinetState, at position, now time.Time, grace time.Duration) retained {
	below := acknowledgedBelow(last, at)
	next := retained{Floor: max(t.Floor, 1), Cleared: t.Cleared, Closed: t.Closed, Unknown: t.Unknown}
	latest := next.Floor
	for _, m := range t.Milestones {
		if m.Filled != 0 && m.Filled != last.Total {
			m.Filled, m.Below = 0, m.Below-1
		}
		if m.Below > below { // the gate was moved back, so the retention of these drawers restarts when their events are acknowledged again
			m.Filled, m.Below = 0, below
		}
		if m.At > now.Add(grace/milestonesPerGrace).UnixMilli() {
			m.At = now.UnixMilli() // a node with a fast clock added the milestone
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

// A retentionPlan describes how a sweep will change a head.
type retentionPlan struct {
	of        map[cabinetName]retained
	raised    map[domain.Group]bool // groups in which a floor rises; their gates must be confirmed as current before the write
	closed    []cabinetName         // cabinets whose last drawer the plan closes, so that no later Save fills it
	isChanged bool                  // whether the plan changes the retention state in the head

	removed []cabinetName // cabinets without stored drawers, which the plan removes from the head

	flushed []cabinetName // cabinets in closed whose tails must be flushed before the write
}

// planRetention computes the retention at the time now from a head and gates, which may be stale. It
// closes drawers only if mayClose is true, and removes cabinets only if mayRemove is true.
//
// A drawer is closed if the position of its gate is in the drawer and a milestone is due. With a stale gate,
// a drawer may be closed too late, or after a Replay although it contains unacknowledged events. Closing a
// drawer removes no event, so the gate need not be current.
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
			if mayClose && before.Closed == "" { // all events are acknowledged, and the drawer was not closed because of its age
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
