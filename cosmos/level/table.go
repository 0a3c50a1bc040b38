package level

import "context"

// A Level describes one level of a Table.
type Level struct {
	Since   string   // the first version that knows it
	Changes []string // what changes with it, one sentence each, for operators
	Steps   []Step   // rewrite documents once the level is active, in this order
}

// A Step rewrites documents in the formats of its level.
type Step struct {
	Name string // unique in its level; it is stored
	// Run rewrites some documents from a position on, and returns the next position. The position is ""
	// at the start and after the last document. A part may run again after a crash, and two commands
	// may run the same part at the same time.
	Run func(ctx context.Context, position string) (next string, err error)
}

// A Table has the levels that a version knows, in order. The first is level 1.
type Table []Level

// Highest returns the number of the last level.
func (t Table) Highest() int { return len(t) }

// Of returns a level of the table.
func (t Table) Of(level int) *Level { return &t[level-1] }
