package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Finder finds events and bundles by their ids, for operators. A search reads several documents one
// after the other. If the mailbox changes during the search, the results may be inconsistent with each
// other, so they are only for display. A search changes neither events nor bundles; like any reader,
// it may complete an unfinished write.
type Finder interface {
	// FindEvent returns the retained events with an id, in one mailbox or in all mailboxes: several
	// mailboxes may have events with the same id. A mailbox that cannot be read, completely or in part,
	// is listed in Unread and does not end the search. Finding nothing is not an error.
	//
	// With a trace instead of an id, FindEvent returns the events that the spans of the trace saved, and
	// the bundles that the spans opened. A search by trace reads every document of a mailbox.
	FindEvent(ctx context.Context, q EventQuery) (EventSearch, error)

	// FindBundle returns up to limit retained bundles with an id, open or closed, of one recipient or,
	// if recipient is zero, of all: several recipients may have a bundle with the same id.
	FindBundle(ctx context.Context, id domain.BundleID, recipient domain.ActorID, limit int) (BundleSearch, error)
}

// An EventQuery says which event to find, and where.
type EventQuery struct {
	ID        domain.EventID
	Trace     domain.TraceID // search by trace, instead of ID; zero: search by ID
	Recipient domain.ActorID // zero: every mailbox
	Origin    domain.Origin  // zero: any

	// Only a search of all mailboxes uses the following fields. When the search reaches a limit, it
	// still completes the mailboxes that it has begun.

	After string        // EventSearch.Next of the previous search; "": from the start
	Limit int           // limit for the results; 0: no limit
	Units float64       // limit for request units; 0: no limit. Stores without request units ignore it
	Time  time.Duration // limit for the duration; 0: no limit
}

// An EventSearch is the result of a search for an event.
type EventSearch struct {
	Found     []FoundEvent
	Saves     []FoundSave   // events that the trace saved
	Bundles   []FoundBundle // bundles that a Peek of the trace opened
	Mailboxes int           // number of searched mailboxes; 0 if nothing was ever saved for EventQuery.Recipient
	Unread    []UnreadMailbox
	Next      string // EventQuery.After for the next search; "": every mailbox was searched
}

// A BundleSearch is the result of a search for a bundle.
type BundleSearch struct {
	Found   []FoundBundle // sorted by recipient
	HasMore bool
	Unread  []UnreadMailbox
}

// An UnreadMailbox is a mailbox that could not be read, completely or in part, so that results may be
// missing.
type UnreadMailbox struct {
	Recipient string // "": unknown. In a damaged store, it may be invalid
	Reason    string
}

// A FoundEvent is a retained event of a recipient.
type FoundEvent struct {
	StoredEvent
	Group domain.Group
	Slot  *EventSlot // nil in a store without drawers

	Save domain.TraceContext // the span that saved the event; zero: unknown

	IsReserved     bool  // a Save in flight has stored the event, which is not visible and may never become visible
	IsAcknowledged bool  // the event will not be returned again, unless its bundle is replayed
	Before         int64 // number of visible events of the cabinet that wait before the event; -1: not counted

	// Bundles are the bundles that contain or contained the event, in the order in which they were opened.
	Bundles []FoundBundle
	HasMore bool // the event may also be in bundles that were not searched
	Mailbox MailboxState
	// FirstWaiting is the first event of the next bundle of the group. It is nil if this event is in the
	// cabinet of the found event, or if a bundle is open.
	FirstWaiting *FirstWaiting
}

// A FoundSave describes consecutive events of a cabinet that one span saved.
type FoundSave struct {
	Span        domain.TraceContext
	Cabinet     domain.CabinetKey
	Group       domain.Group
	First, Last domain.Sequence
	Count       int
	Saved       time.Time
	IDs         []domain.EventID // ids of the first events, up to MaxSaveIDs
}

// MaxSaveIDs is the limit for the ids of a FoundSave.
const MaxSaveIDs = 20

// Add adds the next event.
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
	InHead  bool // the event is still in the head, with the newest events of the cabinet, and not yet in the drawer
}

// A MailboxState contains the parts of a mailbox's state that may delay an event or a bundle.
type MailboxState struct {
	Frozen bool
	Open   *domain.Bundle // the open bundle of the group, or nil
	Lost   string         // why the first waiting event of the cabinet cannot be read; "": it is readable, or Open is not nil
}

// FirstWaiting is the first waiting event of a cabinet.
type FirstWaiting struct {
	Cabinet  domain.CabinetKey
	Sequence domain.Sequence
}

// A FoundBundle is a retained bundle.
type FoundBundle struct {
	domain.Bundle
	State BundleState
	// Closed is the time at which the bundle was dequeued, skipped or released, to the second. If the
	// retention was shortened since, Closed is later than that time. Closed is zero for an open bundle.
	Closed time.Time
	Frozen bool // the mailbox is frozen
}

// A BundleState is the state of a bundle.
type BundleState string

// The states of a bundle.
const (
	BundleOpen     BundleState = "open"
	BundleDequeued BundleState = "dequeued"
	BundleSkipped  BundleState = "skipped"  // an operator closed the bundle
	BundleReleased BundleState = "released" // an operator withdrew the bundle
)
