package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Streams stores published messages until their retention has passed. A stream need not be created: a
// stream that was never used behaves as an empty stream.
type Streams interface {
	// Append appends up to MaxAppend messages, which have passed their Check, and returns the outcome of
	// each message. The appended messages become visible together, and appended messages of one priority
	// have consecutive numbers. Once Append returns without an error, the appended messages are durable
	// and visible.
	//
	// A message with an ID that the stream was sent within the last IDRetention is not appended: it is a
	// duplicate if its content is the same, otherwise a conflict. If two messages of a call have the
	// same ID, the call fails with Invalid. If a call is repeated after an Uncertain failure, messages
	// without an ID may be appended twice.
	//
	// A message with a Version is appended only as the entry whose number is Version - 1. The message is
	// a duplicate if the stream has or had an entry with this number, and a gap if entries before this
	// number are missing. A duplicate or a gap is not appended.
	//
	// A store may record the domain.TraceContext of ctx, if it is sampled, for Entry.Accepted. The
	// TraceContext is not part of the content of a message.
	Append(ctx context.Context, stream domain.StreamName, messages []domain.Message) ([]Appended, error)

	// Read returns up to limit entries of the priority of from, in order, beginning with the first
	// entry at or after from. Entries that were appended during the call, or by another node shortly
	// before the call, may be missing. A stream has no gaps, except a domain.DataStream, in which the
	// newest entry represents all earlier entries.
	Read(ctx context.Context, stream domain.StreamName, from domain.Position, limit int) (Entries, error)

	// Seek returns a position of a priority at or shortly before the first entry for which isBefore is
	// false. isBefore must be monotonic: once it is false for an entry, it is false for all later
	// entries. Seek reads a logarithmic number of pages.
	Seek(ctx context.Context, stream domain.StreamName, priority int, isBefore func(number int64, published time.Time) bool) (domain.Position, error)

	// Find returns the position of the message with an ID that its sender chose. It fails with NotFound
	// if the stream was sent no message with this ID within the last IDRetention.
	Find(ctx context.Context, stream domain.StreamName, id string) (domain.Position, error)

	// AddSync adds a cursor to the stream's list of sync cursors. The results of each Append that begins
	// after AddSync has returned include the cursor in Appended.Sync. The call may be repeated.
	AddSync(ctx context.Context, stream domain.StreamName, id domain.CursorID) error

	// RemoveSync removes a cursor from the stream's list of sync cursors. The call may be repeated.
	RemoveSync(ctx context.Context, stream domain.StreamName, id domain.CursorID) error

	// Sync returns the stream's list of sync cursors. The result may be stale.
	Sync(ctx context.Context, stream domain.StreamName) ([]domain.CursorID, error)

	// End returns the positions after the last entries. A cursor that begins there receives all entries
	// that are appended after the call began. It may also receive earlier entries, because the result
	// may be stale.
	End(ctx context.Context, stream domain.StreamName) (StreamEnd, error)

	// CurrentEnd is like End, but its result is never stale: all entries that were appended before the
	// call began are before the positions. It costs more than End.
	CurrentEnd(ctx context.Context, stream domain.StreamName) (StreamEnd, error)
}

// MaxAppend is the limit for the messages of one Append.
const MaxAppend = 60

// MessageRetention is the default retention of messages. An option of the store may change it.
const MessageRetention = 21 * 24 * time.Hour

// IDRetention is the minimum time for which a stream remembers the ID of a message.
const IDRetention = 24 * time.Hour

// Appended is the outcome of a message.
type Appended struct {
	Position  domain.Position // position of the message; if not appended, of the first message with the same ID
	Outcome   AppendOutcome
	Published time.Time           // Published of the message's Entry; zero if the message was not appended
	Accepted  domain.TraceContext // Accepted of the message's Entry
	// Sync has the sync cursors of the stream at the time of the append. For a message that was not
	// appended, Sync may be slightly older.
	Sync []domain.CursorID
}

// An AppendOutcome is the result of appending a message.
type AppendOutcome int

// The outcomes of a message.
const (
	AppendedNow     AppendOutcome = iota
	AppendDuplicate               // a message with its ID and content was appended before
	AppendConflict                // a message with its ID and other content was appended before
	AppendGap                     // a message with a Version was not appended, because entries before it are missing
)

// Entries are consecutive entries of one priority of a stream.
type Entries struct {
	Entries []Entry
	// Start is the position of the first entry. If Start is after the requested position, the entries
	// between the two positions were removed because their retention had passed.
	Start domain.Position
}

// An Entry is a message as the stream returns it.
type Entry struct {
	domain.Message // Payload is nil if PayloadAt is not zero
	Position       domain.Position
	PayloadAt      Section             // location of a large payload in the content store; zero: the payload is in Message
	Published      time.Time           // time of the append, by the clock of its node
	Accepted       domain.TraceContext // span that appended the message; zero: unknown
}

// A StreamEnd contains, for each priority that has entries, the position after its last entry.
type StreamEnd struct {
	Segment   int // the segment in which a priority without entries begins
	Positions []domain.Position
}

// CheckAppend returns an Invalid error unless Append accepts messages. It is for implementations.
func CheckAppend(messages []domain.Message) error {
	if n := len(messages); n > MaxAppend {
		return domain.Errorf(domain.Invalid, "append: want at most %d messages, got %d", MaxAppend, n)
	}
	ids := make(map[string]bool)
	for i := range messages {
		m := &messages[i]
		if err := m.Check(); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if m.ID != "" && ids[m.ID] {
			return domain.Errorf(domain.Invalid, "message %d: an earlier message has the same id %q", i, domain.Shorten(m.ID))
		}
		ids[m.ID] = true
	}
	return nil
}

// VersionOutcome returns the outcome of a message with a version that is not appended to a stream
// whose next entry has another number. It is for implementations.
func VersionOutcome(version, next int64) AppendOutcome {
	if version-1 < next {
		return AppendDuplicate
	}
	return AppendGap
}
