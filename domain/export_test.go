package domain

// UnstoredLetter returns the dead letter of a delivery, if the dead letter is not stored yet, or
// nil.
func (c *Cursor) UnstoredLetter(e EntryID) *Retry { return c.deadLetter(e, nil) }
