package domain

// Move stores some changes of a large update in advance, because one write cannot store all of
// them. rows are the ObjectChanges.Moved of that update. Move moves up to limit spilled rows, and
// rows in the object, to their new places. The highest rows move first, so the current row does not
// change back and forth, and the object remains valid. The result is valid if Finish returns no
// queries.
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

// findInside returns the row in the object that has the given id, or nil.
func (u *ObjectUpdate) findInside(id ObjectRowID) *ObjectRow {
	for i := range u.object.Rows {
		if r := &u.object.Rows[i]; r.ID() == id {
			return r
		}
	}
	return nil
}

// spilledLater returns the spilled rows with a generated place whose time is later than than.
func (u *ObjectUpdate) spilledLater(than int64) []*spilledRow {
	q := SpilledQuery{Kind: SpilledGenerated, Time: than}
	if later := &u.below.later; later.Kind == 0 || q.Time < later.Time {
		*later = q
	}
	found, _ := u.below.lookUp(q)
	return found
}
