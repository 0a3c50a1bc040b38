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
// The events of one Save become visible together, in all their cabinets, or none of them does. A
// visible event stays visible until it is acknowledged. A Save for one recipient never waits for a Save
// for another.
type DataAvailable interface {
	// Save appends events to the cabinets of recipient, in order. All of them must pass their Check, be
	// for recipient, and have origins that the store knows; otherwise the call fails with Invalid and
	// stores nothing. After an Uncertain failure the store may still use the events, so the caller must
	// not change them.
	//
	// An event is skipped if the recipient was sent an event with the same id before, in this call or
	// an earlier one. If their content is the same, it is a duplicate; otherwise it is listed in
	// Saved.Conflicts. All other events are stored. Once Save returns without an error, they are
	// durable and visible.
	//
	// A store may keep the domain.TraceContext of ctx, if it is sampled, for Run.Saves.
	Save(ctx context.Context, recipient domain.ActorID, events []domain.Event) (Saved, error)

	// NextUnacknowledged returns what recipient gets next from groups, which is not empty: the bundle
	// that has been open for the longest time or, if none is open, a run of the cabinet whose first
	// unacknowledged event has the smallest sequence number. It fails with ErrNoData if there is
	// neither, and with ErrNoMailbox, which is an ErrNoData, if no Save was ever begun for recipient;
	// it needs no further read for that. Events that are saved during the call may or may not be
	// included.
	//
	// In a store with the ordering domain.ByRecipient, the run overtakes no event: it ends before its
	// first event that is younger than a waiting event in another cabinet of the same group.
	NextUnacknowledged(ctx context.Context, recipient domain.ActorID, groups []domain.Group) (Next, error)

	// Queues returns the queue of recipient in each group that the store knows, in the order of their
	// names.
	Queues(ctx context.Context, recipient domain.ActorID) ([]Queue, error)

	// Watermark returns the highest visible sequence number of recipient, 0 before the first Save.
	// While it is unchanged, nothing new has been saved. It is as cheap as the store can make it, for
	// callers that call it often.
	Watermark(ctx context.Context, recipient domain.ActorID) (domain.Sequence, error)
}

// Saved is the outcome of a Save for its events.
type Saved struct {
	Accepted   int   // stored by this call
	Duplicates int   // stored before with the same content
	Conflicts  []int // indexes of the events that were stored before with other content
}

// Next is what a recipient gets next.
type Next struct {
	Open    *domain.Bundle // the open bundle, or nil
	Run     Run            // the events of Open or, without Open, those that a new bundle may take
	Waiting int64          // number of visible unacknowledged events in the requested groups, those of Open included
}

// A Run is a range of events of one cabinet, as of the moment when it was obtained.
type Run interface {
	// Group returns the group of the cabinet.
	Group() domain.Group

	// Cabinet returns the key of the cabinet.
	Cabinet() domain.CabinetKey

	// Folder returns a folder in the content store that is deleted when the first events of the run are
	// no longer retained. It is not shared with other cabinets.
	Folder() string

	// Events yields the events in order. It reads only as far as the caller ranges, apart from events
	// that it fetches ahead. An error ends the sequence. The caller may stop at any event; ranging
	// again starts over. Two goroutines must not range over a Run at the same time.
	//
	// A Run for a new bundle yields up to the events of six drawers.
	Events(ctx context.Context) iter.Seq2[StoredEvent, error]

	// Saves returns the spans that have saved the first n events of the run, as far as the store knows
	// them, up to limit, the oldest first. The run must have yielded n events. It makes no request.
	Saves(n, limit int) []domain.TraceContext

	// BacklogAfter returns the backlog after the first n events of the run in the requested groups, as
	// of the moment when the run was obtained, or a later one. The run must have yielded n events; for
	// an open bundle, n may also be the number of all its events. It makes no request. The result is
	// most exact right after the events were read.
	BacklogAfter(n int) domain.Backlog
}

// A StoredEvent is an event as the store returns it. Its Payload is nil; PayloadAt is its location.
type StoredEvent struct {
	domain.Event
	Sequence  domain.Sequence
	PayloadAt Section
	Saved     time.Time // by the clock of the node that saved it; zero: unknown
}
