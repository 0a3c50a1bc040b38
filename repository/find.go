package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Finder finds events and bundles by their ids, for people who look for one. The results are read from
// several documents, one after the other, and may show different moments while a mailbox is in use. No
// rule depends on them. A search changes neither events nor bundles; like any reader, it may complete
// an unfinished write.
type Finder interface {
	// FindEvent returns the events with an id, of one mailbox or of all: many mailboxes may have the
	// same id. It finds retained events. A mailbox that cannot be read, completely or in part, is
	// listed and does not end the search. Finding nothing is not an error.
	//
	// With a trace instead of an id, it returns the events that the spans of the trace have saved, and
	// the bundles that they have opened. That reads everything that is stored of a mailbox.
	FindEvent(ctx context.Context, q EventQuery) (EventSearch, error)

	// FindBundle returns up to limit retained bundles with an id, open or not, of one recipient or, if
	// that is zero, of all: several recipients may have a bundle with the same id.
	FindBundle(ctx context.Context, id domain.BundleID, recipient domain.ActorID, limit int) (BundleSearch, error)
}

// An EventQuery says which event to find, and where.
type EventQuery struct {
	ID        domain.EventID
	Trace     domain.TraceID // instead of ID; zero: none
	Recipient domain.ActorID // zero: every mailbox
	Origin    domain.Origin  // zero: any

	// Of a search of all mailboxes. When it reaches a limit, it still completes the mailboxes that it
	// has begun.
	After string        // EventSearch.Next of the search before; "": from the start
	Limit int           // limit for the results; 0: no limit
	Units float64       // limit for request units; 0: no limit. Stores without request units ignore it
	Time  time.Duration // limit for the duration; 0: no limit
}

// An EventSearch is the result of a search for an event.
type EventSearch struct {
	Found     []FoundEvent
	Saves     []FoundSave   // events that the trace has saved
	Bundles   []FoundBundle // bundles that a Peek of the trace has opened
	Mailboxes int           // number of mailboxes that were searched; 0 for a recipient for whom nothing was ever saved
	Unread    []UnreadMailbox
	Next      string // where the search may be continued; "": every mailbox was looked at
}

// A BundleSearch is the result of a search for a bundle.
type BundleSearch struct {
	Found   []FoundBundle // sorted by recipient
	HasMore bool
	Unread  []UnreadMailbox
}

// An UnreadMailbox could not be read, completely or in part: it may have what was searched for.
type UnreadMailbox struct {
	Recipient string // may be no valid one, in a damaged store; "": not known
	Reason    string
}

// A FoundEvent is a retained event that its recipient has received.
type FoundEvent struct {
	StoredEvent
	Group domain.Group
	Slot  *EventSlot // nil in a store without drawers

	Save domain.TraceContext // the span that has saved it; zero: none is stored

	IsReserved     bool  // a Save in flight has stored it; it is not visible yet, and may never be
	IsAcknowledged bool  // it will not be returned again, unless its bundle is replayed
	Before         int64 // number of visible events of its cabinet that wait before it; -1: not counted

	// Bundles are the bundles that the event is or was in, in the order in which they were opened.
	Bundles      []FoundBundle
	HasMore      bool // there may be other bundles, which were not searched for
	Mailbox      MailboxState
	FirstWaiting *FirstWaiting // the event with which the next bundle of its group begins, if that is in another cabinet and no bundle is open
}

// A FoundSave has consecutive events of a cabinet that one span has saved.
type FoundSave struct {
	Span        domain.TraceContext
	Cabinet     domain.CabinetKey
	Group       domain.Group
	First, Last domain.Sequence
	Count       int
	Saved       time.Time
	IDs         []domain.EventID // the first ones, up to MaxSaveIDs
}

// MaxSaveIDs is the limit for the ids of a FoundSave.
const MaxSaveIDs = 20

// Add adds an event after the others.
func (s *FoundSave) Add(e *StoredEvent) {
	if s.Count == 0 {
		s.First, s.Saved = e.Sequence, e.Saved
	}
	s.Last = e.Sequence
	if s.Count++; s.Count <= MaxSaveIDs {
		s.IDs = append(s.IDs, e.ID)
	}
}

// An EventSlot is the location of an event.
type EventSlot struct {
	Drawer  string
	Ordinal int
	Slot    int
	InHead  bool // it is one of the newest of its cabinet, which are not in the drawer yet
}

// A MailboxState is that part of the state of a mailbox which may delay an event or a bundle.
type MailboxState struct {
	Frozen bool
	Open   *domain.Bundle // the open bundle of the group, or nil
	Lost   string         // why the first event that waits in the cabinet cannot be read; "": it can, or Open is not nil
}

// FirstWaiting is the first event that waits in a cabinet.
type FirstWaiting struct {
	Cabinet  domain.CabinetKey
	Sequence domain.Sequence
}

// A FoundBundle is a retained bundle.
type FoundBundle struct {
	domain.Bundle
	State BundleState
	// Closed is when the bundle was dequeued, skipped or released, to the second. If the retention was
	// shortened since, it is too late. It is zero for an open bundle.
	Closed time.Time
	Frozen bool // the mailbox is frozen
}

// A BundleState is the state of a bundle.
type BundleState string

// The states of a bundle.
const (
	BundleOpen     BundleState = "open"
	BundleDequeued BundleState = "dequeued"
	BundleSkipped  BundleState = "skipped"  // closed by an operator
	BundleReleased BundleState = "released" // taken back by an operator
)
