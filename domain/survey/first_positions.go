package survey

import (
	"slices"
)

// firstPositions collects the first limit positions of all that are added. Each time it has twice
// as many, it sorts the positions and drops half of them, so it never sorts the whole list of, for
// example, 100,000 mailboxes.
type firstPositions struct {
	limit int
	kept  []listPosition
	full  bool // limit positions were collected, so a position after bound is dropped
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

// sortedPositions returns the first limit positions, or all if fewer were added, in order.
func (f *firstPositions) sortedPositions() []listPosition {
	f.cutToLimit()
	return f.kept
}
