package repository

import (
	"context"
	"iter"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Survey keeps a line for each mailbox, so that operators can list them all. One node at a time
// reads what changes and renews the lines; every node can read them. A line is a reading of a
// moment before now: no rule depends on it, and it may be of a state that no other call has seen.
type Survey interface {
	// Surveyed returns the newest lines that this node can read. It may be called often: it asks
	// the store only for lines that are new to this node. A store that was
	// never surveyed has none.
	Surveyed(ctx context.Context) (Surveyed, error)
}

// Surveyed are the lines of a survey. It is safe for concurrent use. A line may be renewed while
// it is used.
type Surveyed interface {
	// At returns the moment of the survey, by the clock of the node that surveys or of the store:
	// what was stored before is in the lines, and what was stored after it may be. It is zero while the first
	// survey has not read all mailboxes; then lines are missing.
	At() time.Time

	// Summaries returns a summary of each line, in any order. The caller calls no other method
	// while it reads them.
	Summaries() iter.Seq[domain.MailboxSummary]

	// Mailbox returns the line of a recipient, and false if it has none.
	Mailbox(recipient domain.ActorID) (domain.Mailbox, bool)
}
