package repository

import (
	"context"
	"errors"
	"slices"

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

	// Row returns a row of an object. It may be a stale read. It fails with NotFound if the object has
	// no such row.
	Row(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID) (domain.ObjectRow, error)

	// List returns up to limit objects of a range, in the order of their keys, byte by byte. Keys of
	// more than OrderedKey bytes that share these may be in another order, which does not change.
	// It may be a stale read.
	List(ctx context.Context, r ObjectRange, limit int) (ObjectPage, error)

	// Count returns how many objects a range has, wherever a list of it would begin. It may be
	// a stale read.
	Count(ctx context.Context, r ObjectRange) (int64, error)

	// Buckets returns the buckets of which an event was to be stored, in order. It may be a stale read.
	Buckets(ctx context.Context) ([]string, error)

	// Amend changes the facts of a row, all or none, and returns it as it is then: the row with
	// an id or, with the zero id, the current one. change gets the facts as they are stored. It may be
	// called several times, and has no effect of its own. If it fails, nothing is changed, and
	// Amend fails with its error. It fails with NotFound if there is no such row.
	Amend(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID, change func(domain.ObjectFacts) (domain.ObjectFacts, error)) (domain.ObjectRow, error)
}

// OrderedKey is how many first bytes of a key decide its place in a list.
const OrderedKey = 600

// An ObjectReport is an event of an object.
type ObjectReport struct {
	Name domain.ObjectName
	domain.ObjectEvent
}

// An ObjectResult is the outcome of a report.
type ObjectResult struct {
	Outcome domain.ObjectOutcome // 0: it failed
	Doubt   bool                 // Object.Doubt, in the state that includes the event
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
	Prefix      string        // of the keys
	UpTo        string        // objects that are not listed behind this key; empty: no limit
	OnlyCurrent bool          // objects that have a current row
	Matches     []ObjectMatch // all of which their current row has; with OnlyCurrent

	// AnyOrder lists the objects in an order that is cheap: it does not change, and has no meaning.
	AnyOrder bool
	After    string // objects that are listed behind the object with this key
}

// An ObjectMatch demands one of some values in a field of a row. A row without a value in the field
// does not match.
type ObjectMatch struct {
	Field  domain.ObjectField
	Values []string // not empty
}

// Has reports whether a row has one of the values.
func (m ObjectMatch) Has(r *domain.ObjectRow) bool {
	text := r.Field(m.Field)
	return text != "" && slices.Contains(m.Values, text)
}

// An ObjectPage is a page of a list.
type ObjectPage struct {
	Objects []domain.Object
	// Damaged are the objects of the page that cannot be read. They do not count for its limit.
	Damaged []DamagedObject
	// More reports that the page ended at its limit. The next page begins after the key After; it
	// may be empty.
	More  bool
	After string
}

// A DamagedObject is an object that cannot be read.
type DamagedObject struct {
	Key   string // or if that cannot be read, what the store names the object by
	Err   error  // Damaged
	Place int    // how many of the objects of the page are listed before it
}
