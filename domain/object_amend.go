package domain

// Amend changes the facts of a row: of the one with an id or, with the zero id, of the current one.
// change gets the facts as they are stored; it may be called again with them, and changes nothing
// itself. Facts have no influence on the order of rows, so the current row remains the current one.
//
// It returns the row as it is then, or nil if there is no such row. Both are valid if Finish has no
// queries. It fails if change does, and must not be followed by Finish then.
func (u *ObjectUpdate) Amend(id ObjectRowID, change func(ObjectFacts) (ObjectFacts, error)) (*ObjectRow, error) {
	if id == (ObjectRowID{}) {
		if u.object.Current == nil {
			return nil, nil //nolint:nilnil // no such row
		}
		id = u.object.Current.ID()
	}
	row := u.findByID(id)
	if row == nil {
		return nil, nil //nolint:nilnil // no such row, or no answer yet
	}
	if !u.repeated {
		facts, err := change(row.ObjectFacts)
		if err != nil {
			return nil, err
		}
		row.ObjectFacts, u.hasEffect = facts, true
		u.below.noteChange(id)
	}
	amended := *row
	return &amended, nil
}

// findByID returns the row with an id, or nil.
func (u *ObjectUpdate) findByID(id ObjectRowID) *ObjectRow {
	if inside := u.inside(id); inside != nil || u.object.Spilled == 0 {
		return inside
	}
	found, _ := u.below.lookUp(SpilledQuery{Kind: SpilledByID, ID: id})
	if len(found) == 0 {
		return nil
	}
	return &found[0].row
}
