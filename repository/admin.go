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

// ErrFrozen reports that an operator has frozen the recipient's queue: Peek and Dequeue fail until the
// queue is thawed. Save still stores events. The error is of kind Unavailable.
var ErrFrozen = domain.Errorf(domain.Unavailable, "queue: %w", errors.New("an operator has frozen it; retry after it is thawed"))

// Admin contains the actions by which an operator repairs the blocked queue of one recipient. An action
// and its record are stored atomically. An action that is repeated after an Uncertain failure may fail
// with Conflict or NotFound because the first call succeeded; the records show whether it did.
type Admin interface {
	// Inspect returns the stored state of a queue.
	Inspect(ctx context.Context, recipient domain.ActorID) (Inspection, error)

	// Bundle returns a retained bundle, open or closed, and the run of its events. The run is nil if the
	// events are no longer retained. The bundle and the run may be stale. Bundle also works for a frozen
	// queue. It fails with NotFound if the bundle is not retained.
	Bundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (FoundBundle, Run, error)

	// RecordView records that an operator views the payloads of a retained bundle. It changes nothing else.
	// It fails with NotFound if the bundle is not retained.
	RecordView(ctx context.Context, recipient domain.ActorID, id domain.BundleID, by AdminAction) error

	// Release withdraws the open bundle id: the bundle is no longer open, and its events are again the
	// first waiting events of their cabinet. The next Peek opens another bundle with another id. Release
	// fails with NotFound if the bundle is not open.
	Release(ctx context.Context, recipient domain.ActorID, id domain.BundleID, by AdminAction) error

	// Skip closes the open bundle id without an acknowledgement by its actor. The events of the bundle
	// will not be returned again. Skip fails with NotFound if the bundle is not open.
	Skip(ctx context.Context, recipient domain.ActorID, id domain.BundleID, by AdminAction) error

	// Replay reopens and returns the bundle that was closed last in group. The next Peek returns this
	// bundle unchanged. Replay fails with Conflict if a bundle is open in the group. It fails with
	// NotFound if no bundle of the group was closed, or if the bundle that was closed last is no longer
	// retained. After a Replay and a Release, another Replay reopens the bundle before the released one.
	Replay(ctx context.Context, recipient domain.ActorID, group domain.Group, by AdminAction) (domain.Bundle, error)

	// Freeze makes Peek, Find and Dequeue fail with ErrFrozen until Thaw is called. Freezing a frozen
	// queue and thawing a queue that is not frozen only store a record. Freeze and Thaw fail with
	// NotFound if nothing was ever saved for the recipient.
	Freeze(ctx context.Context, recipient domain.ActorID, by AdminAction) error

	// Thaw makes Peek, Find and Dequeue of a frozen queue work again.
	Thaw(ctx context.Context, recipient domain.ActorID, by AdminAction) error

	// Abandon skips the lost events at the front of a cabinet, up to the first event that can be read,
	// and returns the numbers and locations of the lost events. It fails with Conflict if the first
	// waiting event can be read, or if a bundle is open in the group of the cabinet. It fails with
	// NotFound if no event waits in the cabinet. Bundles that were closed before Abandon can no longer
	// be replayed. A lost event that is sent again is stored as a new event; a node with stale reads may
	// still count it as a duplicate.
	Abandon(ctx context.Context, cabinet domain.CabinetKey, by AdminAction) (Loss, error)

	// Records returns up to limit records of operators' actions on a queue, the newest first.
	Records(ctx context.Context, recipient domain.ActorID, limit int) ([]Record, error)
}

// An AdminAction names the operator who requests an action, and the reason.
type AdminAction struct {
	Who string // 1 to 200 characters
	Why string // 1 to 1,000 characters
}

// Check returns an Invalid error unless Who and Why have the permitted length, and each is one line of
// printable text, so that a terminal can show it safely.
func (o AdminAction) Check() error {
	if n := utf8.RuneCountInString(o.Who); n < 1 || n > 200 {
		return domain.Errorf(domain.Invalid, "who: want 1 to 200 characters that name the operator, got %d", n)
	}
	if n := utf8.RuneCountInString(o.Why); n < 1 || n > 1000 {
		return domain.Errorf(domain.Invalid, "why: want 1 to 1,000 characters that state the reason, got %d", n)
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

// A Record is the record of an operator's action on a queue.
type Record struct {
	AdminAction
	What   string          // name of the action: look, release, skip, replay, freeze, thaw or abandon
	When   time.Time       // time of the action, by the clock of the node
	Group  domain.Group    // zero for freeze, thaw and abandon
	Bundle domain.BundleID // zero for freeze, thaw and abandon
	Events int             // number of events of the bundle
	Lost   *Loss           // the skipped events; nil unless What is abandon
}

// A Loss describes the lost events that Abandon skipped. The ids of the events are lost as well.
type Loss struct {
	Cabinet domain.CabinetKey
	Events  int64
	First   domain.Sequence // number of the first lost event
	Last    domain.Sequence // number of the last lost event
	Slots   []LostSlots     // locations of the lost events; empty for a store without drawers
}

// LostSlots are consecutive slots of one drawer.
type LostSlots struct {
	Drawer   string
	Ordinal  int
	From, To int // slots from From to To-1
}

// An Inspection is the stored state of a queue.
type Inspection struct {
	Recipient domain.ActorID
	Frozen    bool
	Reserved  domain.Sequence // the highest assigned number
	Watermark domain.Sequence // the highest visible number
	Saving    bool            // whether an intent is stored: a Save is in flight, or its node died
	Groups    []InspectedGroup
	Cabinets  []InspectedCabinet
}

// An InspectedGroup is one group of a queue.
type InspectedGroup struct {
	Group      domain.Group
	Generation int64          // generation of the gate
	Open       *domain.Bundle // the open bundle, or nil
	Waiting    int64          // number of waiting events, including the events of Open
}

// An InspectedCabinet is one cabinet of a queue.
type InspectedCabinet struct {
	Cabinet             domain.CabinetKey
	Group               domain.Group
	Received            int64 // number of events received since the cabinet was created
	Acknowledged        int64 // number of events acknowledged since the cabinet was created
	Last                domain.Sequence
	AcknowledgedThrough domain.Sequence   // the highest acknowledged number
	Floor               int               // drawers with a smaller ordinal are deleted, or about to be deleted
	Drawers             []InspectedDrawer // the retained drawers; empty for a store without drawers
}

// An InspectedDrawer is one drawer of a cabinet.
type InspectedDrawer struct {
	ID       string
	Ordinal  int
	First    domain.Sequence
	Events   int // number of visible events
	Weight   domain.Weight
	Sealed   bool
	Position int // number of acknowledged slots, as stored in the drawer
}
