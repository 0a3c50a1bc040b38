package domain

// An ObjectPair combines the creation and the deletion of an object, as one row in paired mode. One
// of the two rows may be nil.
type ObjectPair struct{ Created, Deleted *ObjectRow }

// PairRows returns the pairs of an object in paired mode. rows are all rows of the object, in
// ascending order. Among the native rows of a version, a Deleted row forms a pair with the Created
// row directly before it. A row with a generated place is alone in its pair. The pairs have the
// order of their first rows.
func PairRows(rows []ObjectRow) []ObjectPair {
	var pairs []ObjectPair
	last := make(map[VersionID]int) // for each version whose last native row is Created: the index of that row's pair
	for i := range rows {
		r := &rows[i]
		if r.Type == ObjectCreated {
			if !r.IsGenerated() {
				last[r.Version] = len(pairs)
			}
			pairs = append(pairs, ObjectPair{Created: r})
			continue
		}
		if p, ok := last[r.Version]; ok && !r.IsGenerated() {
			pairs[p].Deleted = r
		} else {
			pairs = append(pairs, ObjectPair{Deleted: r})
		}
		if !r.IsGenerated() {
			delete(last, r.Version)
		}
	}
	return pairs
}

// Duplicates returns the sum of the duplicates of the two rows.
func (p ObjectPair) Duplicates() (n int64) {
	for _, r := range []*ObjectRow{p.Created, p.Deleted} {
		if r != nil {
			n += r.Duplicates
		}
	}
	return n
}

// Reordered returns number_reordered: the number of times that paired mode would have changed the
// pair because its events arrived out of order. No other value of a pair depends on the order of
// arrival. So it is counted when a row arrives, and stored in the Deleted row.
func (p ObjectPair) Reordered() int64 {
	if p.Deleted == nil {
		return 0
	}
	return p.Deleted.Reordered
}

// countReordered updates the counts when a row arrives. A Deleted row without a Created row has the
// count 1, and a Created row that arrives later adds 1. If a Deleted row replaces another Deleted
// row in a pair, its count is the replaced row's count plus 1, and the replaced row's count becomes
// 1.
func (u *ObjectUpdate) countReordered(row *ObjectRow) {
	if row.IsGenerated() {
		if row.Type == ObjectDeleted {
			row.Reordered = 1
		}
		return
	}
	before, after := u.neighbors(row)
	if after != nil && after.Type == ObjectCreated {
		after = nil
	}
	switch {
	case row.Type == ObjectCreated:
		if after != nil {
			after.Reordered++
		}
	case before == nil || before.Type == ObjectDeleted:
		row.Reordered = 1
		return
	case after != nil:
		row.Reordered = after.Reordered + 1
		after.Reordered = 1
	}
	if after != nil {
		u.below.noteChange(after.ID())
	}
}

// neighbors returns the native rows directly before and after row that have the same version, or
// nil. If row is Created, before may be nil although a spilled row precedes it, because that row
// does not matter.
func (u *ObjectUpdate) neighbors(row *ObjectRow) (before, after *ObjectRow) {
	o, order := &u.object, row.Order()
	at, _ := u.index(order)
	for i := at - 1; i >= 0 && before == nil; i-- {
		before = nativeOf(&o.Rows[i], row.Version)
	}
	for i := at; i < len(o.Rows) && after == nil; i++ {
		after = nativeOf(&o.Rows[i], row.Version)
	}
	isLate := order.Compare(o.Floor) <= 0
	if before != nil || !o.hasSpilled(row.Version) || !isLate && row.Type == ObjectCreated {
		return before, after
	}
	below, _ := u.below.lookUp(SpilledQuery{Kind: SpilledNeighbors, Version: row.Version, Order: order})
	for _, r := range below {
		if r.row.Order().Compare(order) < 0 {
			before = &r.row
		} else {
			after = &r.row
		}
	}
	return before, after
}

func nativeOf(r *ObjectRow, v VersionID) *ObjectRow {
	if r.IsGenerated() || r.Version != v {
		return nil
	}
	return r
}
