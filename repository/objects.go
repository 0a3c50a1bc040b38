package repository

import (
	"context"
	"errors"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// Objects keeps what stores report about their objects, and the state that results from it.
type Objects interface {
	// Ingest stores the events of one message, which have passed their Check, and returns the outcome
	// of each. If one event fails, the others may still succeed. An event with an outcome is durable,
	// and the state of its object includes it.
	//
	// An event that is stored already is counted as a duplicate, but an event that the call has twice
	// is stored or counted once. A call that is repeated after a failure counts as another delivery.
	//
	// The call fails only if its context has ended before anything was stored.
	Ingest(ctx context.Context, reports []ObjectReport) ([]ObjectResult, error)

	// Object returns an object with its counts, its newest rows and its current row. It may be a stale
	// read. It fails with NotFound if no event of the object is stored.
	Object(ctx context.Context, name domain.ObjectName) (domain.Object, error)

	// History returns up to limit rows of an object that are below an order, from the newest to the
	// oldest; with the zero order, it begins with the newest row of all. Fewer rows than limit mean
	// that there are no more. It may be a stale read; rows that are stored or moved between two calls
	// may be missing in both results, or be in both.
	History(ctx context.Context, name domain.ObjectName, below domain.ObjectOrder, limit int) ([]domain.ObjectRow, error)

	// Row returns a row of an object. It may be a stale read. It fails with NotFound if the object has
	// no such row.
	Row(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID) (domain.ObjectRow, error)

	// List returns up to limit objects of a range, in the byte order of their keys. Keys of more than
	// OrderedKey bytes with the same first OrderedKey bytes may be in another order, which does not
	// change. It may be a stale read.
	List(ctx context.Context, r ObjectRange, limit int) (ObjectPage, error)

	// Count returns the number of objects in a range, without regard to After. It may be a stale read.
	Count(ctx context.Context, r ObjectRange) (int64, error)

	// Buckets returns the buckets for which an event was stored, or was about to be, in order. It may
	// be a stale read.
	Buckets(ctx context.Context) ([]string, error)

	// Amend changes the facts of a row, all or none, and returns the row as it is then. It is the row
	// with an id or, if the id is zero, the current row. change gets the stored facts. It may be called
	// several times, and must have no other effect. If it fails, nothing is changed, and Amend fails
	// with its error. It fails with NotFound if there is no such row.
	Amend(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID, change func(domain.ObjectFacts) (domain.ObjectFacts, error)) (domain.ObjectRow, error)
}

// OrderedKey is the number of leading bytes of a key that decide its place in a list.
const OrderedKey = 600

// An ObjectReport is an event of an object.
type ObjectReport struct {
	Name domain.ObjectName
	domain.ObjectEvent
}

// An ObjectResult is the outcome of a report.
type ObjectResult struct {
	Outcome domain.ObjectOutcome // 0: the event has failed
	Doubt   bool                 // Object.Doubt, in the state that includes the event
	Exists  bool                 // the object has a current row, in the state that includes the event
	// Err is nil, or the reason why the event failed. After Uncertain, it may be stored; after any
	// other kind, it is not. If only deletions help, Err is ErrFull, which is Unavailable.
	Err error
}

// ErrFull reports that the part of the store for an object is full.
var ErrFull = errors.New("the part of the store to which the object belongs is full")

// An ObjectRange is a part of the objects of a bucket.
type ObjectRange struct {
	Bucket      string
	Prefix      string        // prefix of the keys
	UpTo        string        // the last key; empty: no limit
	OnlyCurrent bool          // only objects that have a current row
	Matches     []ObjectMatch // the current row must meet all of them; needs OnlyCurrent

	// AnyOrder lists the objects in an order that is cheap: it is stable, but has no meaning.
	AnyOrder bool
	After    string // only objects that are listed after the object with this key
}

// An ObjectMatch selects rows that have one of some values in a field. A row without a value in the
// field does not match.
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
	// Damaged has the objects of the page that cannot be read. They do not count for its limit.
	Damaged []DamagedObject
	// More reports that the page ended at its limit. The next page begins after the key After; it
	// may be empty.
	More  bool
	After string
}

// A DamagedObject is an object that cannot be read.
type DamagedObject struct {
	Key   string // if that cannot be read, the name of the object in the store
	Err   error  // Damaged
	Place int    // number of objects of the page before it
}
