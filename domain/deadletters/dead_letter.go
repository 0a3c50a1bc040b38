package deadletters

import (
	"context"
	"time"
)

// A DeadLetter is a dead letter of a queue, without its body.
type DeadLetter struct {
	Number        int64   // sequence number that the bus assigned
	MessageID     string  // message id that the sender set; "" if it is not a string
	Session       *string // session id; nil: the message has no session
	EnqueuedAt    time.Time
	Reason        string // dead-letter reason; "": the message has no reason
	Description   string
	DeliveryCount int
	Size          int64 // length of the body, in bytes
	ContentType   string
	Subject       string

	ResentBy string // operator who sent the message again before; "": it was never sent again
}

// A Content is a dead letter with its body.
type Content struct {
	DeadLetter
	Body       []byte            // the first MaxBody bytes of the body
	IsCut      bool              // the body is longer than MaxBody
	Properties map[string]string // application properties, as text
}

// MaxBody is the maximum length of Content.Body.
const MaxBody = 1 << 20

// A Bus gives access to the dead letters of queues. It is safe for concurrent use.
//
// Its errors have one of these kinds:
//
//   - NotFound: the queue does not exist.
//   - Unavailable: nothing was done.
//   - Busy: another receiver has locked a dead letter.
//   - Conflict: the bus does not allow the action.
//   - Damaged: a dead letter cannot be read.
//   - Uncertain: a copy may have been sent although the dead letter was not removed.
type Bus interface {
	// Peek returns up to limit dead letters with numbers above after, in the order of their
	// numbers. If the result is empty, the queue has no such dead letters. Peek locks and changes
	// nothing.
	Peek(ctx context.Context, queue string, after int64, limit int) ([]DeadLetter, error)

	// Read returns a dead letter with its body. It fails with NotFound if the queue has no dead
	// letter with this number.
	Read(ctx context.Context, queue string, number int64) (*Content, error)

	// Resend sends a copy of each dead letter in numbers to the queue. The copy has another
	// message id and the operator's name. When the bus has accepted the copy, Resend removes
	// the dead letter. It skips dead letters that no longer exist, and stops at the first
	// failure. It returns the number of dead letters that were sent again.
	Resend(ctx context.Context, queue string, numbers []int64, who string) (resent int, err error)

	// Delete removes the dead letters in numbers. It skips, stops and counts like Resend.
	Delete(ctx context.Context, queue string, numbers []int64) (deleted int, err error)

	// Count returns the number of dead letters of a queue, and false if the bus does not
	// provide it.
	Count(queue string) (n int64, isKnown bool)
}

// A BusError wraps an error of a Bus, to distinguish it from errors of the store of records. A
// BusError has the kind of the wrapped error.
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
