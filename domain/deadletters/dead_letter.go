package deadletters

import (
	"context"
	"time"
)

// A DeadLetter is a message that is among the dead letters of a queue, without its body.
type DeadLetter struct {
	Number        int64   // the sequence number, by which the bus knows it
	MessageID     string  // as its sender has set it; "" if that is no text
	Session       *string // nil: none
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

// MaxBody is the limit of a body that is shown, in bytes.
const MaxBody = 1 << 20

// A Bus reaches the dead letters of queues. It is safe for concurrent use.
//
// Its errors are classified: NotFound means that the queue does not exist, Unavailable that
// nothing was done, Busy that a dead letter is locked by another receiver, Conflict that the
// bus does not allow it, Damaged that a dead letter cannot be read, and Uncertain that a copy
// may have been sent while the dead letter is still there.
type Bus interface {
	// Peek returns up to limit dead letters with numbers above after, in the order of their
	// numbers. An empty result means that there are none. Nothing is locked or changed.
	Peek(ctx context.Context, queue string, after int64, limit int) ([]DeadLetter, error)

	// Read returns the dead letter with a number. It fails with NotFound if it is not there.
	Read(ctx context.Context, queue string, number int64) (*Content, error)

	// Resend sends a copy of each of the dead letters with numbers to their queue, under
	// another message id, with the name of the operator, and removes the dead letter when the
	// copy was accepted. It returns how many were sent again: those that are no longer there
	// are passed over. It ends with the first one that fails.
	Resend(ctx context.Context, queue string, numbers []int64, who string) (resent int, err error)

	// Delete removes the dead letters with numbers as Resend does, and sends nothing.
	Delete(ctx context.Context, queue string, numbers []int64) (deleted int, err error)

	// Count returns the number of dead letters of a queue, if the bus lets it be known.
	Count(queue string) (n int64, isKnown bool)
}

// A BusError is an error of a Bus, and no error of the store that has the records. It has the kind
// of the error that it wraps.
type BusError struct{ err error }

func (e *BusError) Error() string { return e.err.Error() }

// Unwrap returns the error of the Bus.
func (e *BusError) Unwrap() error { return e.err }

// markBusError marks an error as one of a Bus. A nil err stays nil.
func markBusError(err error) error {
	if err == nil {
		return nil
	}
	return &BusError{err}
}
