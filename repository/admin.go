package repository

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// ErrFrozen reports that an operator has frozen the recipient's queue: Peek and Dequeue fail until it
// is thawed. Events are still stored. It is of kind Unavailable.
var ErrFrozen = domain.Errorf(domain.Unavailable, "queue: %w", errors.New("an operator has frozen it; it will be thawed"))

// Admin has the actions of an operator about the queue of one recipient when its normal operation is
// blocked. Each is stored together with its record; neither is stored without the other. An action that
// is repeated after an Uncertain failure may fail with Conflict or NotFound because the first call
// succeeded; the records show that.
type Admin interface {
	// Inspect returns the stored state of a queue.
	Inspect(ctx context.Context, recipient domain.ActorID) (Inspection, error)

	// Bundle returns a retained bundle, open or not, and the run of its events, which is nil if these
	// are no longer retained. It works for a frozen queue, too. It may be a stale read, as may all of
	// the run. It fails with NotFound if the bundle is not retained.
	Bundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (FoundBundle, Run, error)

	// Look records that an operator looks at the payloads of a retained bundle, and changes nothing
	// else. It fails with NotFound if the bundle is not retained.
	Look(ctx context.Context, recipient domain.ActorID, id domain.BundleID, by AdminAction) error

	// Release takes back the open bundle id: it is no longer open, and its events wait at the front
	// again. The next Peek opens another bundle, under another id. It fails with NotFound if the bundle
	// is not open.
	Release(ctx context.Context, recipient domain.ActorID, id domain.BundleID, by AdminAction) error

	// Skip closes the open bundle id without a confirmation by its actor. Its events will not be
	// returned again. It fails with NotFound if the bundle is not open.
	Skip(ctx context.Context, recipient domain.ActorID, id domain.BundleID, by AdminAction) error

	// Replay reopens the bundle that was closed last in group, and returns it: the next Peek returns it
	// as it was. It fails with Conflict if a bundle is open in the group, and with NotFound if none was
	// closed or the last one is no longer retained. Another Replay after a Release reopens the bundle
	// before that one.
	Replay(ctx context.Context, recipient domain.ActorID, group domain.Group, by AdminAction) (domain.Bundle, error)

	// Freeze makes Peek, Find and Dequeue fail with ErrFrozen until Thaw. To freeze a frozen queue, or
	// to thaw one that is not frozen, is recorded and changes nothing. Both fail with NotFound if
	// nothing was ever saved for the recipient.
	Freeze(ctx context.Context, recipient domain.ActorID, by AdminAction) error

	// Thaw ends a Freeze.
	Thaw(ctx context.Context, recipient domain.ActorID, by AdminAction) error

	// Abandon skips the events at the front of a cabinet that the store has lost, up to the next one
	// that can be read, and returns their numbers and locations. It fails with Conflict if the first
	// waiting event can be read, or if a bundle is open in the group of the cabinet, and with NotFound
	// if no event waits in the cabinet. Afterwards, no bundle that was closed before can be replayed.
	// The events stay lost. If one of them is sent again, it is stored as a new event; while reads are
	// stale, a node may still count it as a duplicate.
	Abandon(ctx context.Context, cabinet domain.CabinetKey, by AdminAction) (Loss, error)

	// Records returns up to limit records of operators' orders about a queue, the newest first.
	Records(ctx context.Context, recipient domain.ActorID, limit int) ([]Record, error)
}

// An AdminAction names the operator who requests an action, and the reason.
type AdminAction struct {
	Who string // 1 to 200 characters
	Why string // 1 to 1,000 characters
}

// Check returns an Invalid error unless o says who and why, in text that is readable in a record and
// harmless in a terminal that shows it.
func (o AdminAction) Check() error {
	if n := utf8.RuneCountInString(o.Who); n < 1 || n > 200 {
		return domain.Errorf(domain.Invalid, "who: want 1 to 200 characters that say who orders this, got %d", n)
	}
	if n := utf8.RuneCountInString(o.Why); n < 1 || n > 1000 {
		return domain.Errorf(domain.Invalid, "why: want 1 to 1,000 characters that say why, got %d", n)
	}
	for _, field := range []struct{ name, text string }{{"who", o.Who}, {"why", o.Why}} {
		switch {
		case strings.TrimSpace(field.text) == "":
			return domain.Errorf(domain.Invalid, "%s: want more than blanks", field.name)
		case !utf8.ValidString(field.text) || strings.ContainsFunc(field.text, isUnprintable):
			return domain.Errorf(domain.Invalid, "%s: want one line of text, without control characters", field.name)
		}
	}
	return nil
}

func isUnprintable(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) }

// A Record is the record of an operator's order.
type Record struct {
	AdminAction
	What   string          // look, release, skip, replay, freeze, thaw or abandon
	When   time.Time       // by the clock of the node
	Group  domain.Group    // zero for freeze, thaw and abandon
	Bundle domain.BundleID // zero for freeze, thaw and abandon
	Events int             // number of events of the bundle
	Lost   *Loss           // set for abandon
}

// A Loss describes events at the front of a cabinet that a store has lost. Their ids are lost as well.
type Loss struct {
	Cabinet domain.CabinetKey
	Events  int64
	First   domain.Sequence // their numbers are between First and Last,
	Last    domain.Sequence // both included
	Slots   []LostSlots     // their locations; empty for a store without drawers
}

// LostSlots are consecutive slots of one drawer.
type LostSlots struct {
	Drawer   string
	Ordinal  int
	From, To int // To is exclusive
}

// An Inspection is the stored state of a queue.
type Inspection struct {
	Recipient domain.ActorID
	Frozen    bool
	Reserved  domain.Sequence // the highest number that was ever assigned
	Watermark domain.Sequence // the highest number that is visible
	Saving    bool            // there is an intent: a Save is in flight, or was abandoned
	Groups    []InspectedGroup
	Cabinets  []InspectedCabinet
}

// An InspectedGroup is one group of a queue.
type InspectedGroup struct {
	Group      domain.Group
	Generation int64          // generation of the gate
	Open       *domain.Bundle // the open bundle, or nil
	Waiting    int64          // number of waiting events, those of Open included
}

// An InspectedCabinet is one cabinet of a queue.
type InspectedCabinet struct {
	Cabinet      domain.CabinetKey
	Group        domain.Group
	Received     int64 // number of events that were ever received
	Acknowledged int64 // how many of them are acknowledged
	Last         domain.Sequence
	Through      domain.Sequence   // the highest acknowledged number
	Floor        int               // drawers with a smaller ordinal are gone, or about to go
	Drawers      []InspectedDrawer // the retained ones; empty for a store without drawers
}

// An InspectedDrawer is one drawer of a cabinet.
type InspectedDrawer struct {
	ID       string
	Ordinal  int
	First    domain.Sequence
	Events   int // visible
	Weight   domain.Weight
	Sealed   bool
	Position int // number of acknowledged slots, according to the drawer itself
}
