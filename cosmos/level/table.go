package level

import "context"

// A Level describes one level of a Table.
type Level struct {
	Since   string   // first version that knows the level
	Changes []string // effects of the level, for operators; one sentence each
	Steps   []Step   // steps that rewrite documents after the activation of the level, in order
}

// A Step rewrites documents in the formats of its level.
type Step struct {
	Name string // unique in its level, and stored in the document
	// Run rewrites a part of the documents from position on, and returns the next position. The position
	// is "" at the start and after the last document. A part may run again after a crash, and two
	// commands may run the same part at the same time.
	Run func(ctx context.Context, position string) (next string, err error)
}

// A Table lists the levels that a version knows, in ascending order. The first entry is level 1.
type Table []Level

// Highest returns the number of the last level.
func (t Table) Highest() int { return len(t) }

// Level returns a level of the table.
func (t Table) Level(level int) *Level { return &t[level-1] }
