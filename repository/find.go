package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Finder finds events and bundles by their ids, for people who ask where one is. What it returns
// is read from several documents, one after the other, and may be of different moments while a
// mailbox is in use. No rule depends on it. It changes neither events nor bundles; like any reader,
// it may complete what a writer has left.
type Finder interface {
	// FindEvent returns the events with an id, of one mailbox or of every one: the same id may be
	// in many mailboxes. It finds those that are retained. A mailbox that cannot be read, or can be
	// read in part, is listed and does not end the search. Nothing found is no error.
	//
	// With a trace instead of an id, it returns what the spans of the trace have saved, and the
	// bundles that they have opened. It reads all that is stored of a mailbox.
	FindEvent(ctx context.Context, q EventQuery) (EventSearch, error)

	// FindBundle returns up to limit bundles with an id that are retained, open or not, of one
	// recipient or, if that is zero, of all: each may have its own one.
	FindBundle(ctx context.Context, id domain.BundleID, recipient domain.ActorID, limit int) (BundleSearch, error)
}

// An EventQuery says which event is looked for, and where.
type EventQuery struct {
	ID        domain.EventID
	Trace     domain.TraceID // instead of ID; zero: none
	Recipient domain.ActorID // zero: every mailbox
	Origin    domain.Origin  // zero: any

	// Of a search of every mailbox. It ends after the mailboxes that are being looked at when a
	// limit is reached.
	After string        // EventSearch.Next of the search before; "": from the start
	Limit int           // of what is found; 0: none
	Units float64       // request units; 0: no limit. A store that has none ignores it
	Time  time.Duration // 0: no limit
}

// An EventSearch is the result of a search for an event.
type EventSearch struct {
	Found     []FoundEvent
	Saves     []FoundSave   // of the trace
	Bundles   []FoundBundle // that a Peek of the trace has opened
	Mailboxes int           // looked at; 0 of a recipient for whom nothing was ever saved
	Unread    []UnreadMailbox
	Next      string // where the search may be continued; "": every mailbox was looked at
}

// A BundleSearch is the result of a search for a bundle.
type BundleSearch struct {
	Found   []FoundBundle // in the order of their recipients
	HasMore bool
	Unread  []UnreadMailbox
}

// An UnreadMailbox could not be read, or a part of it: what is looked for may be there.
type UnreadMailbox struct {
	Recipient string // may be no valid one, in a damaged store; "": not known
	Reason    string
}

// A FoundEvent is an event that its recipient has received and that is retained.
type FoundEvent struct {
	StoredEvent
	Group domain.Group
	Slot  *EventSlot // nil in a store that has no drawers

	Save domain.TraceContext // the span that has saved it; zero: none is stored

	IsReserved     bool  // a Save that is under way has stored it; it is not visible yet, and may never be
	IsAcknowledged bool  // it will not be returned again, unless its bundle is replayed
	Before         int64 // visible events of its cabinet that wait before it; -1: not counted

	// Bundles are those that it is or was in, in the order in which they were opened.
	Bundles      []FoundBundle
	HasMore      bool // there may be other bundles, which were not looked for
	Mailbox      MailboxState
	FirstWaiting *FirstWaiting // what a Peek of its group begins with, if that is in another cabinet and no bundle is open
}

// A FoundSave is the events of a cabinet that one span has saved, side by side.
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

// Add adds an event behind the others.
func (s *FoundSave) Add(e *StoredEvent) {
	if s.Count == 0 {
		s.First, s.Saved = e.Sequence, e.Saved
	}
	s.Last = e.Sequence
	if s.Count++; s.Count <= MaxSaveIDs {
		s.IDs = append(s.IDs, e.ID)
	}
}

// An EventSlot is where an event is stored.
type EventSlot struct {
	Drawer  string
	Ordinal int
	Slot    int
	InHead  bool // it is one of the newest of its cabinet, which are not in the drawer yet
}

// A MailboxState is what of a mailbox may delay an event or a bundle.
type MailboxState struct {
	Frozen bool
	Open   *domain.Bundle // of the group; nil: none
	Lost   string         // why the first event that waits in the cabinet cannot be read; "": it can, or Open is not nil
}

// FirstWaiting is the first event that waits in a cabinet.
type FirstWaiting struct {
	Cabinet  domain.CabinetKey
	Sequence domain.Sequence
}

// A FoundBundle is a bundle that is retained.
type FoundBundle struct {
	domain.Bundle
	State BundleState
	// Closed is when it was dequeued, skipped or released, to the second. It is later if the
	// retention was shortened since. It is zero for a bundle that is open.
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
