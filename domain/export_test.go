package domain

// UnstoredLetter returns the dead letter of a delivery that is not stored yet, or nil.
func (c *Cursor) UnstoredLetter(e EntryID) *Retry { return c.deadLetter(e, nil) }
