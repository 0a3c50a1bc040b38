package objects

import "cmp"

// A place is the row that a generated place is behind.
type place struct {
	base string
	rank int
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.base, q.base), cmp.Compare(p.rank, q.rank))
}

// placeBehind returns the place of g if a anchors it, and false if it does not. A delete marker is
// over the native rows of all versions. Other rows are behind the native rows of their version, and
// behind a marker that made it.
func placeBehind(a, g *row) (place, bool) {
	switch isNative := !a.isGenerated(); {
	case g.isDeleteMarker():
		return place{baseOf(a.Form, a.Sequencer), overRow}, isNative
	case a.Version != g.Version || a == g:
		return place{}, false
	case isNative:
		return place{baseOf(a.Form, a.Sequencer), behindRow}, true
	}
	return place{baseOf(a.BaseForm, a.Base), a.Rank}, a.isDeleteMarker()
}

// judgePlaces holds generated places to L6. Where times are equal or unknown, the order of arrival
// decides, which the rows do not tell.
func (j *objectCheck) judgePlaces(rows []row) {
	numbers := make(map[int64]bool)
	for i := range rows {
		g := &rows[i]
		if !g.isGenerated() {
			continue
		}
		if g.Number < 1 || g.Number > j.doc.Generated || numbers[g.Number] {
			j.violated("L6", "number %d of row %+v is used twice, or not one of %d", g.Number, g.identity(), j.doc.Generated)
		}
		numbers[g.Number] = true
		if _, isKnown := j.before.rows[g.identity()]; !isKnown && g.Number <= j.before.doc.Generated {
			j.violated("L6", "row %+v is new, and number %d was given out before", g.identity(), g.Number)
		}
		if _, known := g.happened(); known {
			j.judgePlace(g, rows)
		}
		if before, isKnown := j.before.rows[g.identity()]; isKnown && g.order() != before.order() {
			j.reached("a generated place moved behind a late row")
		}
	}
	if n := int64(len(numbers)); n != j.doc.Generated && (j.doc.ForgottenRows == 0 || n > j.doc.Generated) {
		j.violated("L6", "%d rows have a generated place, and it counts %d", len(numbers), j.doc.Generated)
	}
}

func (j *objectCheck) judgePlace(g *row, rows []row) {
	at, _ := g.happened()
	rank := behindRow
	if g.isDeleteMarker() {
		rank = overRow
	}
	lowest, highest := place{rank: rank}, place{rank: rank}
	note := func(a *row, isThere bool) {
		p, anchors := placeBehind(a, g)
		if !anchors {
			return
		}
		t, known := a.happened()
		if isThere && known && t < at && p.compare(lowest) > 0 {
			lowest = p
		}
		if (!known || t <= at) && p.compare(highest) > 0 {
			highest = p
		}
	}
	for i := range rows {
		note(&rows[i], true)
	}
	for _, r := range j.before.forgotten { // it was there when g came, or was forgotten before
		note(&r, false)
	}
	for i := range j.gone {
		note(&j.gone[i], false)
	}
	if got := (place{baseOf(g.BaseForm, g.Base), g.Rank}); got.compare(lowest) < 0 || got.compare(highest) > 0 {
		j.violated("L6", "row %+v is behind %+v, want a place from %+v to %+v", g.identity(), got, lowest, highest)
	}
}
