package domain

import (
	"cmp"
	"time"
)

// The row of an event with a null sequencer has a generated place: behind the highest native row of
// its version whose time is not later than the event's time. That native row is its base. Rows with
// the same base are ordered by time, and then by arrival. If a native row with an earlier time
// arrives late, the generated row moves behind it. So if all times are distinct, the place does not
// depend on the order of arrival. If times are equal or unknown, the row that arrived first counts
// as earlier.
//
// A delete marker that a lifecycle rule creates is a new version, so its version has no native row.
// It is placed over the highest native row of any version, because the store made it the newest
// version. Later rows of its version are placed behind it. The original system places the marker
// below all versions, so the object that the marker hides remains current.
//
// The latest version in a listing is placed in the same way: at the time of the request, it was
// above all other versions, even if its native row is unknown.
//
// A row that is placed in this way is called a row over others, and its rank is OverRow.

// A placement describes a generated place by the row that it follows.
type placement struct {
	base  Sequencer
	rank  PlacementRank
	after time.Time // time of the followed row if its rank is OverRow, otherwise zero
}

func (p placement) compare(q placement) int {
	return cmp.Or(cmp.Compare(p.base.order, q.base.order), cmp.Compare(p.rank, q.rank), cmp.Compare(orderedTime(p.after), orderedTime(q.after)))
}

// placement returns the generated place of r.
func (r *ObjectRow) placement() placement { return placement{r.Base, r.Rank, r.After} }

// moveTo sets the generated place of r.
func (r *ObjectRow) moveTo(p placement) { r.Base, r.Rank, r.After = p.base, p.rank, p.after }

// isOver reports whether the event's row is placed over others, because its version was the newest
// version at the time of the event. It is for events without sequencer.
func (e *ObjectEvent) isOver() bool {
	return e.IsMarker() || e.Type == ObjectCreated && (e.Reason == Crawl || e.Reason == CrawlRestored)
}

// placementBehind returns the placement behind r for an event without sequencer. It returns false
// if the event cannot be placed behind r.
func placementBehind(r *ObjectRow, e *ObjectEvent) (placement, bool) {
	switch {
	case e.isOver() && r.IsGenerated(): // the base of r may have been forgotten
		return placement{base: r.Base, rank: OverRow}, r.isOver()
	case e.isOver():
		return placement{base: r.Sequencer, rank: OverRow}, true
	case r.Version != e.Version:
		return placement{}, false
	case r.IsGenerated():
		return placement{r.Base, r.Rank, r.Time}, r.isOver()
	default:
		return placement{base: r.Sequencer, rank: BehindRow}, true
	}
}

// setPlace sets the generated place of a new row. All other rows of the object arrived before it.
func (u *ObjectUpdate) setPlace(row *ObjectRow) {
	row.Rank = BehindRow
	if row.isOver() {
		row.Rank = OverRow
	}
	found := false
	follow := func(r *ObjectRow) {
		p, anchors := placementBehind(r, &row.ObjectEvent)
		if anchors && orderedTime(r.Time) <= lastTime(row.Time) && p.compare(row.placement()) >= 0 {
			row.moveTo(p)
			found = true
		}
	}
	for i := range u.object.Rows {
		follow(&u.object.Rows[i])
	}
	q := SpilledQuery{Kind: SpilledAnchor, Version: row.Version, Time: lastTime(row.Time)}
	if row.isOver() {
		q = SpilledQuery{Kind: SpilledOver, Time: lastTime(row.Time)}
	}
	// Rows in the object are above all spilled rows, so a row that was found in the object is the
	// highest.
	if found || u.object.Spilled == 0 || !row.isOver() && !u.object.hasSpilled(row.Version) {
		return
	}
	below, _ := u.below.lookUp(q)
	for _, r := range below {
		follow(&r.row)
	}
}

// isEarlier reports whether a is known to be earlier than b.
func isEarlier(a, b time.Time) bool {
	return !a.IsZero() && !b.IsZero() && orderedTime(a) < orderedTime(b)
}

// moveBehind moves rows with a generated place behind row, if they arrived earlier than row
// although their events were later.
func (u *ObjectUpdate) moveBehind(row *ObjectRow) {
	if !row.IsAnchor() || row.Time.IsZero() {
		return
	}
	later := u.generatedLater(row.Time)
	// Anchors are moved first, because other rows are placed behind them.
	anchors := []*ObjectRow{row}
	for _, wantAnchors := range []bool{true, false} {
		for i := range later {
			g := &later[i]
			if g.IsAnchor() == wantAnchors && u.moveBehindAny(g, anchors) && wantAnchors {
				anchors = append(anchors, g)
			}
		}
	}
}

// generatedLater returns copies of all rows with a generated place whose time is later than t.
func (u *ObjectUpdate) generatedLater(t time.Time) (later []ObjectRow) {
	o := &u.object
	if o.Generated == 0 {
		return nil
	}
	q := SpilledQuery{Kind: SpilledGenerated, Time: t.UnixMicro()}
	later = q.Select(o.Rows)
	if o.SpilledGenerated > 0 && isEarlier(t, o.SpilledTo) {
		for _, r := range u.spilledLater(q.Time) {
			later = append(later, r.row)
		}
	}
	return later
}

// moveBehindAny moves g behind the highest suitable row in anchors, unless this would lower the
// place of g. It reports whether g moved.
func (u *ObjectUpdate) moveBehindAny(g *ObjectRow, anchors []*ObjectRow) bool {
	to := g.placement()
	for _, r := range anchors {
		p, influences := placementBehind(r, &g.ObjectEvent)
		if influences && (isEarlier(r.Time, g.Time) || r.Number > 0 && r.Number < g.Number && orderedTime(r.Time) == orderedTime(g.Time)) && p.compare(to) > 0 {
			to = p
		}
	}
	if to == g.placement() {
		return false
	}
	u.moveRow(g, to)
	return true
}

// moveRow moves a stored row to the place to.
func (u *ObjectUpdate) moveRow(g *ObjectRow, to placement) {
	if i, isInside := u.index(g.Order()); isInside {
		u.object.Rows = append(u.object.Rows[:i], u.object.Rows[i+1:]...)
	} else {
		u.below.remove(g.ID())
		u.below.noteVersion(g.Version)
		u.object.noteUnspilled()
	}
	g.moveTo(to)
	u.put(*g)
	if u.moved == nil {
		u.moved = make(map[ObjectRowID]ObjectRow)
	}
	u.moved[g.ID()] = *g
	u.changed, u.hasEffect = true, true
}
