package survey

import (
	"slices"
)

// firstPositions keeps the first of the added positions, up to limit. It sorts each time it has
// twice as many, so it never sorts a list of 100,000 mailboxes as a whole.
type firstPositions struct {
	limit int
	kept  []listPosition
	full  bool // limit positions are known: a position after bound is dropped
	bound listPosition
}

func newFirstPositions(limit int) *firstPositions {
	return &firstPositions{limit: limit, kept: make([]listPosition, 0, 2*limit)}
}

func (f *firstPositions) add(p listPosition) {
	if f.full && p.compare(f.bound) > 0 {
		return
	}
	if f.kept = append(f.kept, p); len(f.kept) == 2*f.limit {
		f.cutToLimit()
	}
}

func (f *firstPositions) cutToLimit() {
	slices.SortFunc(f.kept, listPosition.compare)
	if len(f.kept) >= f.limit {
		f.kept = f.kept[:f.limit]
		f.full, f.bound = true, f.kept[f.limit-1]
	}
}

// sortedPositions returns the first positions in order.
func (f *firstPositions) sortedPositions() []listPosition {
	f.cutToLimit()
	return f.kept
}
