package deadletters

import (
	"context"
	"time"
)

// A DeadLetter is a message that is among the dead letters of a queue, without its body.
type DeadLetter struct {
	Number        int64   // the sequence number that the bus has assigned
	MessageID     string  // the id that its sender has set; "" if it is not a text
	Session       *string // nil: no session
	EnqueuedAt    time.Time
	Reason        string // "" if none was given
	Description   string
	DeliveryCount int
	Size          int64 // of the body, in bytes
	ContentType   string
	Subject       string

	ResentBy string // the operator who has sent it before; "" if it was not sent before
}

// A Content is a dead letter with its body.
type Content struct {
	DeadLetter
	Body       []byte            // up to MaxBody bytes of it
	IsCut      bool              // there is more of the body
	Properties map[string]string // the application properties, as text
}

// MaxBody is the limit for the bytes of a body that are returned.
const MaxBody = 1 << 20

// A Bus gives access to the dead letters of queues. It is safe for concurrent use.
//
// Its errors are classified: NotFound means that the queue does not exist, Unavailable that
// nothing was done, Busy that another receiver has locked a dead letter, Conflict that the bus
// does not allow the action, Damaged that a dead letter cannot be read, and Uncertain that a
// copy may have been sent while the dead letter is still there.
type Bus interface {
	// Peek returns up to limit dead letters with numbers above after, in the order of their
	// numbers. An empty result means that there are none. Nothing is locked or changed.
	Peek(ctx context.Context, queue string, after int64, limit int) ([]DeadLetter, error)

	// Read returns the dead letter with a number. It fails with NotFound if it does not exist.
	Read(ctx context.Context, queue string, number int64) (*Content, error)

	// Resend sends a copy of each of the dead letters with numbers to their queue, under
	// another message id, with the name of the operator, and removes the dead letter when the
	// copy was accepted. It skips dead letters that no longer exist, and stops at the first
	// failure. It returns the number of dead letters that were sent again.
	Resend(ctx context.Context, queue string, numbers []int64, who string) (resent int, err error)

	// Delete removes the dead letters with numbers, like Resend, but sends no copies.
	Delete(ctx context.Context, queue string, numbers []int64) (deleted int, err error)

	// Count returns the number of dead letters of a queue, if the bus provides it.
	Count(queue string) (n int64, isKnown bool)
}

// A BusError marks an error of a Bus, to distinguish it from errors of the store of records. It
// has the kind of the error that it wraps.
type BusError struct{ err error }

func (e *BusError) Error() string { return e.err.Error() }

// Unwrap returns the error of the Bus.
func (e *BusError) Unwrap() error { return e.err }

// markBusError wraps err in a BusError. A nil err stays nil.
func markBusError(err error) error {
	if err == nil {
		return nil
	}
	return &BusError{err}
}
