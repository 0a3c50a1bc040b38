package objects

import "cmp"

// A rowPosition identifies the row that a generated position is behind.
type rowPosition struct {
	base  string
	rank  int
	after string // the time of that row, if it is over others
}

func (p rowPosition) comparePositions(q rowPosition) int {
	pAfter, _ := micros(p.after)
	qAfter, _ := micros(q.after)
	return cmp.Or(cmp.Compare(p.base, q.base), cmp.Compare(p.rank, q.rank), cmp.Compare(pAfter, qAfter))
}

// positionBehind returns the position of g if a anchors it, and false otherwise. A delete marker, and the latest
// version in a listing, are over the native rows of all versions. Other rows are behind the native rows of their
// version, and behind rows that are over others.
func positionBehind(a, g *objectRow) (rowPosition, bool) {
	switch isNative := !a.isGenerated(); {
	case g.isOver() && isNative:
		return rowPosition{base: baseOf(a.Form, a.Sequencer), rank: overRow}, true
	case g.isOver(): // the row below a may be forgotten
		return rowPosition{base: baseOf(a.BaseForm, a.Base), rank: overRow}, a.isOver() && a != g
	case a.Version != g.Version || a == g:
		return rowPosition{}, false
	case isNative:
		return rowPosition{base: baseOf(a.Form, a.Sequencer), rank: behindRow}, true
	}
	return rowPosition{baseOf(a.BaseForm, a.Base), a.Rank, a.Time}, a.isOver()
}

// checkPositions checks generated positions against L6. If times are equal or unknown, the order of arrival decides,
// which the rows do not show.
func (j *objectCheck) checkPositions(rows []objectRow) {
	numbers := make(map[int64]bool)
	for i := range rows {
		g := &rows[i]
		if !g.isGenerated() {
			continue
		}
		if g.Number < 1 || g.Number > j.doc.Generated || numbers[g.Number] {
			j.addViolation("L6", "number %d of row %+v is used twice, or is above %d", g.Number, g.identityOf(), j.doc.Generated)
		}
		numbers[g.Number] = true
		if _, isKnown := j.before.rows[g.identityOf()]; !isKnown && g.Number <= j.before.doc.Generated {
			j.addViolation("L6", "row %+v is new, but number %d was used before", g.identityOf(), g.Number)
		}
		if _, known := g.happenedAt(); known {
			j.checkPosition(g, rows)
		}
		if before, isKnown := j.before.rows[g.identityOf()]; isKnown && g.orderOf() != before.orderOf() {
			j.markReached("a generated position moved behind a late row")
		}
	}
	if n := int64(len(numbers)); n != j.doc.Generated && (j.doc.ForgottenRows == 0 || n > j.doc.Generated) {
		j.addViolation("L6", "%d rows have a generated position, but it counts %d", len(numbers), j.doc.Generated)
	}
}

func (j *objectCheck) checkPosition(g *objectRow, rows []objectRow) {
	at, _ := g.happenedAt()
	rank := behindRow
	if g.isOver() {
		rank = overRow
	}
	lowest, highest := rowPosition{rank: rank}, rowPosition{rank: rank}
	note := func(a *objectRow, isThere bool) {
		p, anchors := positionBehind(a, g)
		if !anchors {
			return
		}
		t, known := a.happenedAt()
		if isThere && known && t < at && p.comparePositions(lowest) > 0 {
			lowest = p
		}
		if (!known || t <= at) && p.comparePositions(highest) > 0 {
			highest = p
		}
	}
	for i := range rows {
		note(&rows[i], true)
	}
	for _, r := range j.before.forgotten { // a forgotten row may have been the row before g
		note(&r, false)
	}
	for i := range j.gone {
		note(&j.gone[i], false)
	}
	if got := (rowPosition{baseOf(g.BaseForm, g.Base), g.Rank, g.After}); got.comparePositions(lowest) < 0 || got.comparePositions(highest) > 0 {
		j.addViolation("L6", "row %+v has the position %+v, want one from %+v to %+v", g.identityOf(), got, lowest, highest)
	}
}
