package domain

// UnstoredLetter returns the dead letter that a delivery has become since the last settlement, or
// nil.
func (c *Cursor) UnstoredLetter(e EntryID) *Retry { return c.deadLetter(e, nil) }
