package repository

import (
	"context"
	"errors"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// Objects stores the events that object stores report about their objects, and the resulting state.
type Objects interface {
	// Ingest stores the events of one message, which have passed their Check, and returns the outcome of
	// each event. If one event fails, other events may still succeed. An event with an outcome is
	// durable, and the state of its object includes the event.
	//
	// An event that is already stored is counted as a duplicate. An event that occurs twice in reports
	// is stored or counted once. A call that is repeated after a failure counts as another delivery.
	//
	// Ingest fails only if its context ended before any event was stored.
	Ingest(ctx context.Context, reports []ObjectReport) ([]ObjectResult, error)

	// Object returns an object with its counts, its newest rows and its current row. The result may be
	// stale. Object fails with NotFound if no event of the object is stored.
	Object(ctx context.Context, name domain.ObjectName) (domain.Object, error)

	// History returns up to limit rows of an object, from the newest to the oldest. It returns only rows
	// whose order is less than below; if below is zero, it begins with the newest row of the object.
	// Fewer than limit rows mean that the oldest row was reached. The result may be stale. A row that is
	// stored or moved between two calls may be missing from the results, or occur twice.
	History(ctx context.Context, name domain.ObjectName, below domain.ObjectOrder, limit int) ([]domain.ObjectRow, error)

	// Row returns a row of an object. The result may be stale. Row fails with NotFound if the row does
	// not exist.
	Row(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID) (domain.ObjectRow, error)

	// List returns up to limit objects of a range, in the byte order of their keys. Keys longer than
	// OrderedKey bytes that begin with the same OrderedKey bytes are in an arbitrary but stable order.
	// The result may be stale.
	List(ctx context.Context, r ObjectRange, limit int) (ObjectPage, error)

	// Count returns the number of objects in a range. It ignores After. The result may be stale.
	Count(ctx context.Context, r ObjectRange) (int64, error)

	// Buckets returns the buckets for which an event was stored, or for which a node began to store an
	// event, in order. The result may be stale.
	Buckets(ctx context.Context) ([]string, error)

	// Amend atomically replaces the facts of a row with the result of change, and returns the stored
	// row. id selects the row; a zero id selects the current row. change receives the stored facts; it
	// may be called several times, and must not have side effects. If change fails, nothing is stored,
	// and Amend returns the error of change. Amend fails with NotFound if the row does not exist.
	Amend(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID, change func(domain.ObjectFacts) (domain.ObjectFacts, error)) (domain.ObjectRow, error)
}

// OrderedKey is the number of leading bytes of a key that determine the position of its object in a list.
const OrderedKey = 600

// An ObjectReport is an event of an object.
type ObjectReport struct {
	Name domain.ObjectName
	domain.ObjectEvent
}

// An ObjectResult is the outcome of a report.
type ObjectResult struct {
	Outcome domain.ObjectOutcome // 0: the event failed
	Doubt   bool                 // Object.Doubt, in the state that includes the event
	Exists  bool                 // the object has a current row, in the state that includes the event
	// Err is nil, or the reason why the event failed. After Uncertain, the event may be stored; after an
	// error of another kind, it is not stored. If the event can be stored only after deletions, Err wraps
	// ErrPartitionFull and is of kind Unavailable.
	Err error
}

// ErrPartitionFull reports that an event cannot be stored, because the partition of its object is full.
var ErrPartitionFull = errors.New("the part of the store to which the object belongs is full")

// An ObjectRange is a part of the objects of a bucket.
type ObjectRange struct {
	Bucket      string
	Prefix      string        // prefix of the keys
	UpTo        string        // last key of the range; empty: no limit
	OnlyCurrent bool          // whether the range has only objects with a current row
	Matches     []ObjectMatch // the current row must meet all matches; requires OnlyCurrent

	// AnyOrder lists the objects in the cheapest order of the store, which is stable but arbitrary.
	AnyOrder bool
	After    string // only objects that are listed after the object with this key
}

// An ObjectMatch selects rows that have one of some values in a field. A row without a value in the
// field does not match.
type ObjectMatch struct {
	Field  domain.ObjectField
	Values []string // one or more values
}

// Has reports whether a row has one of the values.
func (m ObjectMatch) Has(r *domain.ObjectRow) bool {
	text := r.Field(m.Field)
	return text != "" && slices.Contains(m.Values, text)
}

// An ObjectPage is a page of a list.
type ObjectPage struct {
	Objects []domain.Object
	// Damaged contains the objects of the page that cannot be read. Damaged objects do not count toward
	// the limit of the page.
	Damaged []DamagedObject
	// More reports that the page ended at its limit. The next page, which may be empty, begins after the
	// key After.
	More  bool
	After string
}

// A DamagedObject is an object that cannot be read.
type DamagedObject struct {
	Key      string // key of the object or, if the key cannot be read, the id of its stored document
	Err      error  // error of kind Damaged
	Position int    // number of objects that precede this object on the page
}
