package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Cursors stores the cursors of receivers, with their retries and dead letters. Any node may call any
// method at any time. Only the last owner that loaded a cursor can settle it; the store refuses the
// settlements of earlier owners.
type Cursors interface {
	// Create stores a new cursor. If the cursor exists already, the call fails with Conflict. Create
	// adds the cursor of a watch to a page of [WatchPages], and lowers Served of the page to the
	// position of the cursor if Served is higher.
	Create(ctx context.Context, id domain.CursorID, s domain.Standing) error

	// Load returns the cursor for an owner. From then on, the store refuses the settlements of earlier
	// owners. A conditional write ensures that the cursor is current; a store without stale reads omits
	// the write if owner was the last to load the cursor. clock is the owner's clock; Load reads it
	// after the cursor, so that a slow read does not make a due time too early. Load fails with NotFound
	// if the cursor does not exist.
	Load(ctx context.Context, id domain.CursorID, owner domain.Owner, clock func() time.Time) (*domain.Cursor, CursorVersion, error)

	// Standing returns the stored state of a cursor, without its retries. The result may be stale, so
	// it is only for display. Standing fails with NotFound if the cursor does not exist.
	Standing(ctx context.Context, id domain.CursorID) (domain.Standing, error)

	// Settle atomically stores a settlement of a cursor that has version, and returns the new version.
	// It fails with Conflict, and stores nothing, if another owner has stored the cursor since. It also
	// fails with Conflict if the settlement adds a retry that is stored already, as a retry or as a dead
	// letter that the owner did not find. After an Uncertain failure, the settlement may have been
	// stored. After Conflict and Uncertain, the caller loads the cursor again. After Busy and
	// Unavailable, the settlement was not stored, and the call may be repeated.
	Settle(ctx context.Context, id domain.CursorID, version CursorVersion, s domain.Settlement) (CursorVersion, error)

	// Retire removes a cursor that has version from its shard. The cursor must be closed, without
	// outstanding deliveries. After Retire, Load fails with NotFound, and Create with Conflict. The
	// Standing and the dead letters of the cursor can be read for at least DeadLetterRetention. Then
	// the store deletes the cursor and the definition of its subscription, and the id may be used
	// again. Retire may be repeated. It fails with Conflict if the cursor was stored since it had
	// version, and with NotFound if the cursor is deleted.
	Retire(ctx context.Context, id domain.CursorID, version CursorVersion) error

	// DeadLetters returns up to limit dead letters of a cursor after an entry, in the order of their
	// entries. An entry with Number -1 is before all entries of its priority.
	DeadLetters(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int) ([]domain.Retry, error)

	// Retries returns up to limit deliveries of a cursor that wait for another attempt, after an entry,
	// in the order of their entries. An entry with Number -1 is before all entries of its priority. The
	// result may be stale, so it is only for display.
	Retries(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int) ([]domain.Retry, error)

	// Retry returns a delivery of a cursor that waits for another attempt, or is a dead letter. The
	// result may be stale, so it is only for display. Retry fails with NotFound if the delivery does
	// not exist.
	Retry(ctx context.Context, id domain.CursorID, entry domain.EntryID) (domain.Retry, error)
}

// A CursorVersion identifies a state of a cursor for its store.
type CursorVersion string

// DeadLetterRetention is the time for which a dead letter is stored.
const DeadLetterRetention = 14 * 24 * time.Hour
