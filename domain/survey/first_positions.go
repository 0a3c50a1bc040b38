package survey

import (
	"slices"
)

// firstPositions keeps the first of the positions that are added, up to a limit. It sorts each
// time when it has twice as many, so a list of 100,000 mailboxes is not sorted as a whole.
type firstPositions struct {
	limit int
	kept  []position
	full  bool // kept had limit positions once: a position after bound is not kept
	bound position
}

func newFirstPositions(limit int) *firstPositions {
	return &firstPositions{limit: limit, kept: make([]position, 0, 2*limit)}
}

func (f *firstPositions) add(p position) {
	if f.full && p.compare(f.bound) > 0 {
		return
	}
	if f.kept = append(f.kept, p); len(f.kept) == 2*f.limit {
		f.cut()
	}
}

func (f *firstPositions) cut() {
	slices.SortFunc(f.kept, position.compare)
	if len(f.kept) >= f.limit {
		f.kept = f.kept[:f.limit]
		f.full, f.bound = true, f.kept[f.limit-1]
	}
}

// sorted returns the first positions in order.
func (f *firstPositions) sorted() []position {
	f.cut()
	return f.kept
}
