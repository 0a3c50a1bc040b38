package repository

import (
	"context"
	"iter"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Survey keeps a line for each mailbox, so that operators can list all mailboxes. One node at a time
// reads the changes and renews the lines; every node can read them. A line shows the mailbox at an
// earlier moment: no rule depends on it, and it may show a state that no other call has returned.
type Survey interface {
	// Surveyed returns the newest lines that this node can read. It may be called often: it reads only
	// lines that are new to this node. In a store that was never surveyed, there are none.
	Surveyed(ctx context.Context) (Surveyed, error)
}

// Surveyed has the lines of a survey. It is safe for concurrent use. A line may be renewed while it is
// used.
type Surveyed interface {
	// At returns the time of the survey, by the clock of the node that surveys or of the store: the
	// lines include everything that was stored before, and perhaps later writes. It is zero until the
	// first survey has read all mailboxes; until then lines are missing.
	At() time.Time

	// Summaries returns a summary of each line, in any order. The caller must not call other methods
	// while it ranges over them.
	Summaries() iter.Seq[domain.MailboxSummary]

	// Mailbox returns the line of a recipient, and false if it has none.
	Mailbox(recipient domain.ActorID) (domain.Mailbox, bool)
}
