package repository

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// ErrNoMailbox is the domain.ErrNoData of a recipient for whom nothing was ever saved.
var ErrNoMailbox = fmt.Errorf("%w: nothing was ever saved for this recipient", domain.ErrNoData)

// DataAvailable stores the events of recipients and gives them back in order.
//
// The events of one Save become visible together, in all their cabinets, or
// not one of them does; what is visible stays visible until it is acknowledged. One
// recipient's Save never waits for another's.
type DataAvailable interface {
	// Save appends events to the cabinets of recipient, in order. All of them
	// must pass their Check, be for recipient and be of origins that the store
	// knows, else the call fails with Invalid and stores nothing. After an
	// Uncertain failure the store may still use the events; the caller must not
	// change them.
	//
	// An event whose id the recipient was sent before, in this call or an
	// earlier one, is a duplicate if its content is the same and is skipped; if
	// its content differs it is skipped too and listed in Saved.Conflicts. The
	// others are stored. Once Save returns without an error, they are durable
	// and visible.
	//
	// A store may keep the domain.TraceContext of ctx, if it is sampled, for Run.Saves.
	Save(ctx context.Context, recipient domain.ActorID, events []domain.Event) (Saved, error)

	// NextUnacknowledged returns what recipient gets next from groups, of
	// which there is at least one: the bundle that has been open longest or, if
	// none is open, a run of the cabinet whose first unacknowledged event has
	// the smallest sequence number. It fails with ErrNoData if there is neither,
	// and with ErrNoMailbox, which is an ErrNoData, if no Save was ever begun for
	// recipient. That is known from the same reads;
	// what is saved while the call is under way may or may not be seen.
	//
	// A store whose ordering is domain.ByRecipient gives a run that ends before it
	// would overtake: before the first event that is younger than one that waits in
	// another cabinet of the same group.
	NextUnacknowledged(ctx context.Context, recipient domain.ActorID, groups []domain.Group) (Next, error)

	// Queues returns what waits for recipient in each group that the store knows, in
	// the order of their names.
	Queues(ctx context.Context, recipient domain.ActorID) ([]Queue, error)

	// Watermark returns the highest sequence number of recipient that is visible,
	// 0 before the first Save. If it is what it was, nothing has been saved since.
	// It costs as little as a store can make it, for callers that ask again and
	// again.
	Watermark(ctx context.Context, recipient domain.ActorID) (domain.Sequence, error)
}

// Saved is the outcome of a Save for its events.
type Saved struct {
	Accepted   int   // stored by this call
	Duplicates int   // stored before with the same content
	Conflicts  []int // indexes of events that were stored before with other content
}

// Next is what waits at the front for a recipient.
type Next struct {
	Open    *domain.Bundle // the open bundle, or nil
	Run     Run            // the events of Open, or else those that a new bundle may take
	Waiting int64          // visible unacknowledged events in the groups asked for, those of Open included
}

// A Run is a stretch of one cabinet, as of the moment when it was obtained.
type Run interface {
	// Group returns the group of the cabinet.
	Group() domain.Group

	// Cabinet returns the key of the cabinet.
	Cabinet() domain.CabinetKey

	// Folder returns a folder in the content store that goes with the first events of
	// the run, when these are no longer retained. No other cabinet has it.
	Folder() string

	// Events yields the events in order and reads no further than it is asked
	// to, give or take what it fetches ahead. An error ends the sequence.
	// Breaking off is free; ranging again starts over. A Run must not be ranged
	// over by two goroutines at once.
	//
	// A Run for a new bundle yields at most what six drawers hold.
	Events(ctx context.Context) iter.Seq2[StoredEvent, error]

	// Saves returns the spans that have saved the first n events of the run, as far as the
	// store knows them, up to limit, the oldest first. Those n have been yielded. It asks no
	// store.
	Saves(n, limit int) []domain.TraceContext

	// BacklogAfter returns what waits behind the first n events of the run in the groups
	// that were asked for, as of the moment when the run was obtained or a later
	// one. Those n have been yielded, or are all the events of an open bundle. It
	// asks no store, and is at its most exact right after the events were read.
	BacklogAfter(n int) domain.Backlog
}

// A StoredEvent is an event as the store gives it back. Its Payload is nil;
// PayloadAt says where it lies.
type StoredEvent struct {
	domain.Event
	Sequence  domain.Sequence
	PayloadAt Section
	Saved     time.Time // by the clock of the node that saved it; zero if that is not known
}
