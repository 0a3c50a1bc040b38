package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Cursors keeps the cursors of receivers, with their retries and dead letters. Any node may call any
// method at any time: only the owner that has loaded a cursor last can settle it; settlements of other
// owners are refused.
type Cursors interface {
	// Create stores a new cursor. If the cursor exists already, the call fails with Conflict. The
	// cursor of a watch is added to a page of [WatchPages], and the Served of that page is lowered to
	// the position of the cursor if it is higher.
	Create(ctx context.Context, id domain.CursorID, s domain.Standing) error

	// Load returns the cursor for an owner. A write proves that the cursor is current; in a store that
	// never returns a stale read, a read suffices if owner was the last to load it. From then on, the
	// settlements of earlier owners are refused. clock is the owner's; it is read after the cursor, so
	// that a slow read does not make a due time too early. It fails with NotFound if there is no such
	// cursor.
	Load(ctx context.Context, id domain.CursorID, owner domain.Owner, clock func() time.Time) (*domain.Cursor, CursorVersion, error)

	// Standing returns the stored state of a cursor, without its retries. It may be a stale read, so it
	// is only for display. It fails with NotFound if there is no such cursor.
	Standing(ctx context.Context, id domain.CursorID) (domain.Standing, error)

	// Settle stores a settlement of a cursor that has version, all of it or nothing, and returns the
	// new version. It fails with Conflict if another owner has stored the cursor since, or if a retry
	// that it creates exists already, waiting or as a dead letter that the owner did not find; then
	// nothing of the settlement was stored. After an Uncertain failure, it may have been stored. In
	// these cases the caller loads the cursor again. After Busy or Unavailable, the settlement was not
	// stored, and the call may be repeated.
	Settle(ctx context.Context, id domain.CursorID, version CursorVersion, s domain.Settlement) (CursorVersion, error)

	// Retire removes a cursor that has version from its shard. The cursor must be closed, with nothing
	// outstanding. Afterwards, Load no longer finds it, and Create fails with Conflict. Its Standing
	// and dead letters can be read for at least DeadLetterRetention. Then nothing is left of the cursor
	// and of the definition of its subscription, and the id may be used again. The call may be
	// repeated. It fails with Conflict if the cursor has been stored since, and with NotFound if
	// nothing is left.
	Retire(ctx context.Context, id domain.CursorID, version CursorVersion) error

	// DeadLetters returns up to limit dead letters of a cursor after an entry, in the order of their
	// entries. An entry with Number -1 is before all others of its priority.
	DeadLetters(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int) ([]domain.Retry, error)

	// Retries returns up to limit deliveries of a cursor that wait for another attempt, after an entry,
	// in the order of their entries. An entry with Number -1 is before all others of its priority. It
	// may be a stale read, so it is only for display.
	Retries(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int) ([]domain.Retry, error)

	// Retry returns a delivery of a cursor that waits for another attempt, or is a dead letter. It may
	// be a stale read, so it is only for display. It fails with NotFound if there is no such delivery.
	Retry(ctx context.Context, id domain.CursorID, entry domain.EntryID) (domain.Retry, error)
}

// A CursorVersion identifies a state of a cursor for its store.
type CursorVersion string

// DeadLetterRetention is the time for which a dead letter is kept.
const DeadLetterRetention = 14 * 24 * time.Hour
