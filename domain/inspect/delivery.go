package inspect

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A State is the state of a delivery.
type State string

// The states of a delivery.
const (
	Waiting   State = "waiting"   // the first attempt has not begun
	Calling   State = "calling"   // a node is calling the receiver, or is about to
	Retrying  State = "retrying"  // an attempt failed, and the hub will try again
	Delivered State = "delivered" // the receiver accepted the message
	Dead      State = "dead"      // the delivery is a dead letter
	Filtered  State = "filtered"  // the filter does not match the message
	Expired   State = "expired"   // the stream removed the message before the cursor reached it
	Ended     State = "ended"     // the delivery has ended, but its outcome is no longer stored
)

// States are the states that a Query can select.
var States = []State{Waiting, Calling, Retrying, Delivered, Dead}

// A Delivery is the delivery of a stream entry to the receiver of a subscription.
type Delivery struct {
	ID       domain.DeliveryID
	State    State
	Inferred bool             // true if no outcome is stored, so that the state was inferred from the cursor and the current filter
	Attempts int              // number of attempts with known results
	History  []domain.Attempt // last attempts, oldest first
	Due      time.Time        // when the next attempt is due, or zero
	Reason   string           // why the delivery is a dead letter, or the message expired

	Published time.Time // zero if unknown
	Event     *Event    // nil if the message was not read or was removed

	position domain.Position
	isPoison bool
}

// An Event contains the attributes by which people recognize a message.
type Event struct {
	ID, Type, Source string // "" if the message lacks the attribute
}

// fromRetry returns the delivery for a stored retry or dead letter.
func (n *snapshot) fromRetry(r *domain.Retry) Delivery {
	d := n.newDelivery(r.Position, Retrying)
	d.Attempts, d.History, d.Published, d.Due = r.Attempts, r.History, r.Published, r.Due
	if r.Dead {
		d.State, d.Reason, d.Due, d.isPoison = Dead, r.Reason, time.Time{}, r.IsPoison()
	}
	return d
}

// fromOpen returns the delivery for an open entry: the cursor has reached it, and the delivery has not ended.
func (n *snapshot) fromOpen(at domain.Position) Delivery {
	if n.mayBeCalled() {
		return n.newDelivery(at, Calling)
	}
	return n.newDelivery(at, Waiting)
}

// fromRecent returns the delivery for an entry whose recent attempts are stored. It returns false unless the last
// attempt succeeded.
func (n *snapshot) fromRecent(e domain.EntryID) (Delivery, bool) {
	d := n.newDelivery(n.searchStart(e), Delivered)
	for _, a := range n.standing.Recent {
		if a.Entry == e {
			d.History = append(d.History, a)
			d.Attempts = a.Number
		}
	}
	return d, len(d.History) > 0 && isSuccess(d.History[len(d.History)-1])
}

// isSuccess reports whether the receiver accepted the message in an attempt.
func isSuccess(a domain.Attempt) bool {
	return (&domain.Policy{}).IsSuccess(domain.Answer{Status: a.Status}) && a.Error == ""
}

// recentEntries returns the entries of the recent attempts, in stream order.
func (n *snapshot) recentEntries() []domain.EntryID {
	var all []domain.EntryID
	for _, a := range n.standing.Recent {
		all = append(all, a.Entry)
	}
	slices.SortFunc(all, domain.CompareEntries)
	return slices.Compact(all)
}

// findOpen returns the position of an open entry: the cursor has reached it, and the delivery has not ended. It returns
// false if the entry is not open.
func (n *snapshot) findOpen(e domain.EntryID) (domain.Position, bool) {
	i := slices.IndexFunc(n.standing.Open, func(p domain.Position) bool { return p.EntryID == e })
	if i < 0 {
		return domain.Position{}, false
	}
	return n.standing.Open[i], true
}

func (n *snapshot) newDelivery(at domain.Position, state State) Delivery {
	return Delivery{ID: domain.DeliveryID{Subscription: n.definition.ID, Entry: at.EntryID}, State: state, position: at}
}

// addEvent sets the event of a delivery from its entry.
func (d *Delivery) addEvent(e *repository.Entry) {
	if d.Published.IsZero() {
		d.Published = e.Published
	}
	id := e.Attributes["id"]
	if id == "" {
		id = e.ID
	}
	d.Event = &Event{ID: id, Type: e.Attributes["type"], Source: e.Attributes["source"]}
}
