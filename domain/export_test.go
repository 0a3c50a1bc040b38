package domain

// UnstoredLetter returns a delivery's dead letter if the dead letter is not stored yet, or nil.
func (c *Cursor) UnstoredLetter(e EntryID) *Retry { return c.deadLetter(e, nil) }
