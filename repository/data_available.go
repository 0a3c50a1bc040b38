package repository

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// ErrNoMailbox is a domain.ErrNoData: nothing was ever saved for the recipient.
var ErrNoMailbox = fmt.Errorf("%w: nothing was ever saved for this recipient", domain.ErrNoData)

// DataAvailable stores the events of recipients and returns them in order.
//
// All events of one Save become visible together, in all their cabinets. A visible event stays visible
// until it is acknowledged. A Save for one recipient never waits for a Save for another recipient.
type DataAvailable interface {
	// Save appends events to the cabinets of recipient, in order. Each event must pass its Check, be
	// for recipient, and have an origin that the store knows; otherwise the call fails with Invalid and
	// stores nothing. After an Uncertain failure the store may still use the events, so the caller must
	// not change them.
	//
	// An event is skipped if the recipient was sent an event with the same id before, in this call or
	// an earlier one. An event with the same content is a duplicate; an event with other content is
	// listed in Saved.Conflicts. All other events are stored. Once Save returns without an error, these
	// events are durable and visible.
	//
	// A store may record the domain.TraceContext of ctx, if it is sampled, for Run.Saves.
	Save(ctx context.Context, recipient domain.ActorID, events []domain.Event) (Saved, error)

	// NextUnacknowledged returns the bundle of groups that has been open for the longest time. If no
	// bundle is open, it returns a run of the cabinet whose first unacknowledged event has the smallest
	// sequence number. groups must not be empty. It fails with ErrNoData if no bundle is open and no
	// event waits. If no Save was ever begun for recipient, it fails with ErrNoMailbox, which wraps
	// ErrNoData, and makes no further read. Events that are saved during the call may or may not be
	// included.
	//
	// In a store with the ordering domain.ByRecipient, the run ends before its first event that is newer
	// than a waiting event in another cabinet of the same group, so no event overtakes another.
	NextUnacknowledged(ctx context.Context, recipient domain.ActorID, groups []domain.Group) (Next, error)

	// Queues returns the queue of recipient in each group that the store knows, in the order of the
	// groups' names.
	Queues(ctx context.Context, recipient domain.ActorID) ([]Queue, error)

	// Watermark returns the highest visible sequence number of recipient, or 0 before the first Save.
	// While the watermark is unchanged, no new event is visible. Watermark is as cheap as the store
	// permits, so it may be called often.
	Watermark(ctx context.Context, recipient domain.ActorID) (domain.Sequence, error)
}

// Saved is the outcome of a Save for its events.
type Saved struct {
	Accepted   int   // number of events that this call stored
	Duplicates int   // number of events that were stored before with the same content
	Conflicts  []int // indexes of the events that were stored before with other content
}

// Next is the bundle or run that a recipient receives next.
type Next struct {
	Open    *domain.Bundle // the open bundle, or nil
	Run     Run            // the events of Open; if Open is nil, the events for a new bundle
	Waiting int64          // number of visible unacknowledged events in the requested groups, including the events of Open
}

// A Run is a range of events of one cabinet, in the state in which a call returned the Run.
type Run interface {
	// Group returns the group of the cabinet.
	Group() domain.Group

	// Cabinet returns the key of the cabinet.
	Cabinet() domain.CabinetKey

	// Folder returns a folder in the content store that is deleted when the first events of the run are
	// no longer retained. No other cabinet uses the folder.
	Folder() string

	// Events yields the events in order. It reads only as far as the caller ranges, and a few events
	// ahead. An error ends the sequence. The caller may stop at any event; the next range statement
	// starts with the first event. Two goroutines must not range over a Run at the same time.
	//
	// A Run for a new bundle yields the events of up to six drawers.
	Events(ctx context.Context) iter.Seq2[StoredEvent, error]

	// Saves returns up to limit spans that saved the first n events of the run, the oldest first. Spans
	// that the store did not record are missing. The run must have yielded n events. Saves makes no
	// request.
	Saves(n, limit int) []domain.TraceContext

	// BacklogAfter returns the backlog of the requested groups without the first n events of the run, as
	// it was when the run was obtained or later. The run must have yielded n events; for an open bundle,
	// n may also be the number of all its events. BacklogAfter makes no request. The result is most
	// accurate immediately after the events were read.
	BacklogAfter(n int) domain.Backlog
}

// A StoredEvent is an event that the store returns. Payload is nil; PayloadAt is the location of the
// payload.
type StoredEvent struct {
	domain.Event
	Sequence  domain.Sequence
	PayloadAt Section
	Saved     time.Time // time of the Save, by the clock of its node; zero: unknown
}
