package repository

import (
	"context"
	"errors"

	"github.com/messagehub/messagehub/domain"
)

// Objects keeps what stores report about their objects, and the state that follows from it.
type Objects interface {
	// Ingest stores the events of one message, which have passed their Check, and returns what
	// became of each. An event ends alone: where one fails, the others do not. What has an outcome is
	// durable, and the state of its object includes it.
	//
	// An event that is stored already is counted as a duplicate, but one that the call has twice is
	// stored or counted once. A call that is repeated after a failure is another delivery.
	//
	// The call fails only if its context has ended before anything was stored.
	Ingest(ctx context.Context, reports []ObjectReport) ([]ObjectResult, error)

	// Object returns an object with its counts, its newest rows and its current one. It may be
	// a stale read. It fails with NotFound if no event of the object is stored.
	Object(ctx context.Context, name domain.ObjectName) (domain.Object, error)

	// History returns up to limit rows of an object that are below an order, from the newest to
	// the oldest; with the zero order, from the newest one of all. Fewer rows mean that there are
	// no more. It may be a stale read; what is stored or moved between two calls may be missing
	// in their results, or be in both.
	History(ctx context.Context, name domain.ObjectName, below domain.ObjectOrder, limit int) ([]domain.ObjectRow, error)

	// List returns up to limit objects of a range, in the order of their keys, byte by byte. Keys
	// with the same first 600 bytes may be in another order, which does not change. It may be a
	// stale read.
	List(ctx context.Context, r ObjectRange, limit int) (ObjectPage, error)
}

// An ObjectReport is an event of an object.
type ObjectReport struct {
	Name domain.ObjectName
	domain.ObjectEvent
}

// An ObjectResult says what became of a report.
type ObjectResult struct {
	Outcome domain.ObjectOutcome // 0: it failed
	Exists  bool                 // the object has a current row, in the state that includes the event
	// Err is nil, or why the event failed. After Uncertain, it may be stored. Any other kind means
	// that it is not. It is ErrFull, which is Unavailable, if only deleting helps.
	Err error
}

// ErrFull reports that the part of the store to which an object belongs has no room.
var ErrFull = errors.New("the part of the store to which the object belongs is full")

// An ObjectRange is a part of the objects of a bucket.
type ObjectRange struct {
	Bucket      string
	Prefix      string // of the keys
	After       string // objects that are listed behind this key
	OnlyCurrent bool   // objects that have a current row
}

// An ObjectPage is a page of a list.
type ObjectPage struct {
	Objects []domain.Object
	// More reports that the page ended at its limit, or at what one call looks at; it may be empty
	// then. The next page begins after the key After.
	More  bool
	After string
}
