package domain

// Amend changes the metadata of the row with the given id, or of the current row if id is zero.
// change receives the stored metadata and returns the new metadata. It must have no side effects,
// because it may be called again. The order of rows does not depend on their metadata, so the
// current row does not change.
//
// Amend returns the changed row, or nil if the object has no row with this id. The result is valid
// if Finish returns no queries. If change fails, Amend returns its error, and the caller must not
// call Finish.
func (u *ObjectUpdate) Amend(id ObjectRowID, change func(ObjectFacts) (ObjectFacts, error)) (*ObjectRow, error) {
	if id == (ObjectRowID{}) {
		if u.object.Current == nil {
			return nil, nil //nolint:nilnil // no current row
		}
		id = u.object.Current.ID()
	}
	row := u.findByID(id)
	if row == nil {
		return nil, nil //nolint:nilnil // no row with this id, or no answer to the query yet
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

// findByID returns the row with the given id, or nil.
func (u *ObjectUpdate) findByID(id ObjectRowID) *ObjectRow {
	if inside := u.findInside(id); inside != nil || u.object.Spilled == 0 {
		return inside
	}
	found, _ := u.below.lookUp(SpilledQuery{Kind: SpilledByID, ID: id})
	if len(found) == 0 {
		return nil
	}
	return &found[0].row
}
