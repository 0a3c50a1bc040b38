package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Cursors keeps the cursors of receivers, with their retries and dead letters. Any node may
// call any method at any time: whichever owner loads a cursor last can settle it, and the
// others are refused.
type Cursors interface {
	// Create stores a new cursor. If the cursor exists already, the call fails with Conflict. The cursor
	// of a watch is added to a page of [WatchPages], whose Served becomes the position of the cursor if
	// that is lower.
	Create(ctx context.Context, id domain.CursorID, s domain.Standing) error

	// Load returns the cursor for an owner, proved to be current by a write, or with a store
	// that never returns a stale read, by a read if owner was the last to load it. From then on,
	// the settlements of earlier owners are refused. clock is the owner's; it is read after the
	// cursor, so that a slow read makes no due time early. It fails with NotFound if there is no
	// such cursor.
	Load(ctx context.Context, id domain.CursorID, owner domain.Owner, clock func() time.Time) (*domain.Cursor, CursorVersion, error)

	// Standing returns what is stored of a cursor, without its retries. Nothing proves it: it may
	// be a stale read, and is for display alone. It fails with NotFound if there is no such
	// cursor.
	Standing(ctx context.Context, id domain.CursorID) (domain.Standing, error)

	// Settle stores a settlement of a cursor of version, all of it or nothing, and returns the
	// new version. It fails with Conflict if another owner has stored the cursor since, or if a
	// retry that it creates is there, alive or as a dead letter that the owner did not find, and
	// then nothing of the settlement was stored; after an Uncertain failure, it may have been.
	// In both cases the caller loads the cursor again. After Busy or Unavailable, the
	// settlement was not stored and may be stored again.
	Settle(ctx context.Context, id domain.CursorID, version CursorVersion, s domain.Settlement) (CursorVersion, error)

	// Retire removes a cursor of version from its shard, which is closed and of which nothing is
	// outstanding: Load no longer finds it, and Create fails with Conflict. Standing and
	// dead letters can be read for DeadLetterRetention at least; then nothing is left of the cursor
	// and of the definition of its subscription, and the id may be used again. The call may be
	// repeated. It fails with Conflict if the cursor has been stored since, and with NotFound if
	// nothing is left.
	Retire(ctx context.Context, id domain.CursorID, version CursorVersion) error

	// DeadLetters returns up to limit dead letters of a cursor behind an entry, in the order of
	// their entries; one with Number -1 is before all of its priority.
	DeadLetters(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int) ([]domain.Retry, error)

	// Retries returns up to limit deliveries of a cursor that wait for another attempt, behind an
	// entry, in the order of their entries; one with Number -1 is before all of its priority.
	// Nothing proves them: they are for display alone.
	Retries(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int) ([]domain.Retry, error)

	// Retry returns a delivery of a cursor that waits for another attempt, or is a dead letter.
	// Nothing proves it: it is for display alone. It fails with NotFound if there is no such
	// delivery.
	Retry(ctx context.Context, id domain.CursorID, entry domain.EntryID) (domain.Retry, error)
}

// A CursorVersion identifies a state of a cursor for its store.
type CursorVersion string

// DeadLetterRetention is how long a dead letter is kept.
const DeadLetterRetention = 14 * 24 * time.Hour
