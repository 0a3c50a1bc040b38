package objects

import "cmp"

// A rowPosition is the generated position of a row without a sequencer. The position is directly after that of a
// different row, its anchor.
type rowPosition struct {
	base  string
	rank  int
	after string // time of the anchor, if the anchor has a generated position
}

func (p rowPosition) comparePositions(q rowPosition) int {
	pAfter, _ := micros(p.after)
	qAfter, _ := micros(q.after)
	return cmp.Or(cmp.Compare(p.base, q.base), cmp.Compare(p.rank, q.rank), cmp.Compare(pAfter, qAfter))
}

// positionBehind returns the position of g after its anchor a, and false if a does not anchor g. If g is a delete marker
// or the latest version of a listing (see isOver), native rows of all versions anchor it. Any other row is anchored by
// native rows of its version, and by rows of its version for which isOver is true.
func positionBehind(a, g *objectRow) (rowPosition, bool) {
	switch isNative := !a.isGenerated(); {
	case g.isOver() && isNative:
		return rowPosition{base: baseOf(a.Form, a.Sequencer), rank: overRow}, true
	case g.isOver(): // the native row that anchors a may be forgotten, so a anchors g in its place
		return rowPosition{base: baseOf(a.BaseForm, a.Base), rank: overRow}, a.isOver() && a != g
	case a.Version != g.Version || a == g:
		return rowPosition{}, false
	case isNative:
		return rowPosition{base: baseOf(a.Form, a.Sequencer), rank: behindRow}, true
	}
	return rowPosition{baseOf(a.BaseForm, a.Base), a.Rank, a.Time}, a.isOver()
}

// checkPositions checks generated positions against L6. For equal or unknown times, a position depends on the order of
// arrival, which rows do not record, so checkPositions permits every order.
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
	for _, r := range j.before.forgotten { // a forgotten row may be the anchor of g
		note(&r, false)
	}
	for i := range j.gone {
		note(&j.gone[i], false)
	}
	if got := (rowPosition{baseOf(g.BaseForm, g.Base), g.Rank, g.After}); got.comparePositions(lowest) < 0 || got.comparePositions(highest) > 0 {
		j.addViolation("L6", "row %+v has the position %+v, want one from %+v to %+v", g.identityOf(), got, lowest, highest)
	}
}
