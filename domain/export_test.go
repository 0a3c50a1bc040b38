package domain

// UnstoredLetter returns the dead letter of a delivery that is not stored yet. It returns nil if the
// delivery has no such dead letter.
func (c *Cursor) UnstoredLetter(e EntryID) *Retry { return c.deadLetter(e, nil) }
