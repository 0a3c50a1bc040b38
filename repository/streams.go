package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Streams keeps published messages until their retention has passed. A stream need not be created: one
// without messages behaves as an existing one.
type Streams interface {
	// Append appends up to MaxAppend messages, which have passed their Check, and returns the outcome
	// of each. Those that are appended become visible together, and those of one priority have
	// consecutive numbers. Once Append returns without an error, they are durable and visible.
	//
	// A message with an ID that the stream was sent within the last IDRetention is not appended: it is
	// a duplicate if its content is the same, otherwise a conflict. If two messages of a call have the
	// same ID, the call fails with Invalid. After an Uncertain failure, a repeated call appends
	// messages without an ID again.
	//
	// A message with a Version is appended only as the entry whose number is Version - 1. It is a
	// duplicate if the stream has had an entry with that number, and a gap if entries before it are
	// missing; in both cases it is not stored.
	//
	// A store may keep the domain.TraceContext of ctx, if it is sampled, for Entry.Accepted. It is not
	// part of the content of a message.
	Append(ctx context.Context, stream domain.StreamName, messages []domain.Message) ([]Appended, error)

	// Read returns up to limit entries of the priority of from, in order, beginning with the first
	// entry at from or after it. Entries that are appended during the call, or that another node has
	// appended a moment ago, may be missing. A stream has no gaps, except a domain.DataStream, in which
	// the newest entry represents those before it.
	Read(ctx context.Context, stream domain.StreamName, from domain.Position, limit int) (Entries, error)

	// Seek returns a position of a priority from which Read soon reaches the first entry for which
	// isBefore is false. No such entry is before that position. The entries for which isBefore is true
	// come before all others. It reads a logarithmic number of pages.
	Seek(ctx context.Context, stream domain.StreamName, priority int, isBefore func(number int64, published time.Time) bool) (domain.Position, error)

	// Find returns the position of a message by the ID that its sender has chosen. It fails with
	// NotFound if the stream was sent no message with this ID within the last IDRetention.
	Find(ctx context.Context, stream domain.StreamName, id string) (domain.Position, error)

	// AddSync adds a cursor to the stream's list of sync cursors: each Append that begins after the
	// call has returned returns the cursor. It may be repeated.
	AddSync(ctx context.Context, stream domain.StreamName, id domain.CursorID) error

	// RemoveSync removes a cursor from the stream's list of sync cursors. It may be repeated.
	RemoveSync(ctx context.Context, stream domain.StreamName, id domain.CursorID) error

	// Sync returns the cursors that the stream lists as sync. It may be a stale read.
	Sync(ctx context.Context, stream domain.StreamName) ([]domain.CursorID, error)

	// End returns the positions after the last entries. A cursor that begins there takes all entries
	// that are appended after the call began.
	End(ctx context.Context, stream domain.StreamName) (StreamEnd, error)

	// CurrentEnd is End, but is never a stale read: all entries that were appended before the call
	// began are before the positions. It costs more.
	CurrentEnd(ctx context.Context, stream domain.StreamName) (StreamEnd, error)
}

// MaxAppend is the limit for the messages of one Append.
const MaxAppend = 60

// MessageRetention is the time for which a message is kept, unless an option of the store says
// otherwise.
const MessageRetention = 21 * 24 * time.Hour

// IDRetention is the minimum time for which a stream remembers the ID of a message.
const IDRetention = 24 * time.Hour

// Appended is the outcome of a message.
type Appended struct {
	Position  domain.Position // of the message or, if it was not appended, of the first message with its ID
	Outcome   AppendOutcome
	Published time.Time           // Published of its Entry; zero if it was not appended
	Accepted  domain.TraceContext // Accepted of its Entry
	// Sync are the sync cursors of the stream: for a message that was appended now, as of the append;
	// otherwise they may be slightly older.
	Sync []domain.CursorID
}

// An AppendOutcome is how the append of a message ended.
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
	// Start is the position of the first entry. If it is after the requested one, the entries between
	// were removed, because their retention had passed.
	Start domain.Position
}

// An Entry is a message as the stream returns it.
type Entry struct {
	domain.Message // its Payload is nil if PayloadAt is not zero
	Position       domain.Position
	PayloadAt      Section             // of a large payload, in the content store
	Published      time.Time           // by the clock of the node that appended it
	Accepted       domain.TraceContext // the span that has appended it; zero: none is stored
}

// A StreamEnd is the end of a stream.
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
			return domain.Errorf(domain.Invalid, "message %d: its id is that of another one: %q", i, domain.Clip(m.ID))
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
