package domain

// Move moves up to limit stored spilled rows, and the rows in the object, to the places in rows.
// rows are the ObjectChanges.Moved of another update that has more changes than one write can
// store: a Move stores some of these changes in advance, and the object remains valid. The highest
// rows move first, so the current row does not change back and forth. The result is valid if
// Finish returns no queries.
func (u *ObjectUpdate) Move(rows []ObjectRow, limit int) {
	if len(rows) == 0 {
		return
	}
	first := orderedTime(rows[0].Time)
	for i := range rows {
		first = min(first, orderedTime(rows[i].Time))
	}
	if u.object.SpilledGenerated > 0 {
		u.spilledLater(first - 1)
	}
	for i := range rows {
		g := u.findInside(rows[i].ID())
		if g == nil {
			known := u.below.rows[rows[i].ID()]
			if known == nil {
				continue // the row is not stored yet
			}
			if limit--; limit < 0 {
				return
			}
			g = &known.row
		}
		if moving := *g; moving.placement() != rows[i].placement() {
			u.moveRow(&moving, rows[i].placement())
		}
	}
}

// findInside returns a row in the object, or nil.
func (u *ObjectUpdate) findInside(id ObjectRowID) *ObjectRow {
	for i := range u.object.Rows {
		if r := &u.object.Rows[i]; r.ID() == id {
			return r
		}
	}
	return nil
}

// spilledLater returns the spilled rows with a generated place that are later than a time.
func (u *ObjectUpdate) spilledLater(than int64) []*spilledRow {
	q := SpilledQuery{Kind: SpilledGenerated, Time: than}
	if later := &u.below.later; later.Kind == 0 || q.Time < later.Time {
		*later = q
	}
	found, _ := u.below.lookUp(q)
	return found
}
