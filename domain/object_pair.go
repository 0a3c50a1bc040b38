package domain

// An ObjectPair is a row in paired mode: the creation and the deletion of an object. One of
// them may be nil.
type ObjectPair struct{ Created, Deleted *ObjectRow }

// PairRows returns the pairs of an object in paired mode. rows are all rows of the object, in
// ascending order. Among the native rows of a version, a Deleted row forms a pair with a Created
// row directly before it. A row with a generated place has a pair without the other row. The pairs
// are in the order of their first rows.
func PairRows(rows []ObjectRow) []ObjectPair {
	var pairs []ObjectPair
	last := make(map[VersionID]int) // index of the pair of each version's last native row, if that row is Created
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

// Duplicates returns the sum of the duplicates of both rows.
func (p ObjectPair) Duplicates() (n int64) {
	for _, r := range []*ObjectRow{p.Created, p.Deleted} {
		if r != nil {
			n += r.Duplicates
		}
	}
	return n
}

// Reordered returns number_reordered: how often paired mode would have changed the pair because
// its events arrived out of order. It is the only value of a pair that depends on the order of
// arrival. So it is counted when a row arrives, and stored in the Deleted row.
func (p ObjectPair) Reordered() int64 {
	if p.Deleted == nil {
		return 0
	}
	return p.Deleted.Reordered
}

// countReordered counts the changes of pairs when a row arrives. A Deleted row without a Created
// row has the count 1. If the Created row arrives later, it adds 1. If a Deleted row takes over the
// Created row of another Deleted row, its count is one more than the count of the other row, which
// is reset to 1.
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

// neighbors returns the native rows of the version directly before and directly after row, or nil.
// If row is Created, the row before it does not matter: before may be nil if that row is spilled.
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
