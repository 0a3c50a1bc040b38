package repository

import (
	"context"
	"iter"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Survey stores a line for each mailbox, so that operators can list all mailboxes. One node at a time
// reads the changes of mailboxes and updates the lines; every node can read the lines. A line contains
// an earlier state of its mailbox, perhaps one that no other call returned, so it is only for display.
type Survey interface {
	// Surveyed returns the newest lines that this node can read. It may be called often, because it
	// reads only lines that are new to this node. The result is empty before the first survey of the
	// store.
	Surveyed(ctx context.Context) (Surveyed, error)
}

// Surveyed contains the lines of a survey. It is safe for concurrent use. Lines may be updated between
// two calls of its methods.
type Surveyed interface {
	// At returns the time of the survey, by the clock of the surveying node or of the store. The lines
	// include all writes before this time, and perhaps later writes. At returns zero until the first
	// survey has read all mailboxes; until then lines may be missing.
	At() time.Time

	// Summaries returns a summary of each line, in any order. The caller must not call other methods
	// while it ranges over the summaries.
	Summaries() iter.Seq[domain.MailboxSummary]

	// Mailbox returns the line of a recipient, and false if the recipient has no line.
	Mailbox(recipient domain.ActorID) (domain.Mailbox, bool)
}
