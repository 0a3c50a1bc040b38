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
	Waiting   State = "waiting"   // it was not called yet
	Calling   State = "calling"   // it was taken: the receiver is being called, or will be called immediately
	Retrying  State = "retrying"  // it failed, and waits for its next attempt
	Delivered State = "delivered" // the receiver has accepted it
	Dead      State = "dead"      // a dead letter
	Filtered  State = "filtered"  // the filter does not match it
	Expired   State = "expired"   // it was removed from the stream before it was taken
	Ended     State = "ended"     // it has ended, and its outcome is no longer stored
)

// States are the states by which deliveries can be listed.
var States = []State{Waiting, Calling, Retrying, Delivered, Dead}

// A Delivery is the delivery of an entry of the stream to the receiver of a subscription.
type Delivery struct {
	ID       domain.DeliveryID
	State    State
	Inferred bool             // no result is stored: the state was inferred from the cursor and the current filter
	Attempts int              // calls whose result is known
	History  []domain.Attempt // the last ones
	Due      time.Time        // time at which the next attempt is due; zero if no attempt is due
	Reason   string           // reason of a dead letter or an expired message

	Published time.Time // zero: not known
	Event     *Event    // nil: it was not read, or was removed

	position domain.Position
	isPoison bool
}

// An Event has the attributes by which people identify a message.
type Event struct {
	ID, Type, Source string // "": not set
}

// fromRetry returns the delivery of a retry or a dead letter.
func (n *snapshot) fromRetry(r *domain.Retry) Delivery {
	d := n.newDelivery(r.Position, Retrying)
	d.Attempts, d.History, d.Published, d.Due = r.Attempts, r.History, r.Published, r.Due
	if r.Dead {
		d.State, d.Reason, d.Due, d.isPoison = Dead, r.Reason, time.Time{}, r.IsPoison()
	}
	return d
}

// fromOpen returns the delivery of an entry that was taken and has not ended.
func (n *snapshot) fromOpen(at domain.Position) Delivery {
	if n.isCalled() {
		return n.newDelivery(at, Calling)
	}
	return n.newDelivery(at, Waiting)
}

// fromRecent returns the delivery of an entry whose last attempt has succeeded. It returns
// false if the stored attempts include no such attempt.
func (n *snapshot) fromRecent(e domain.EntryID) (Delivery, bool) {
	d := n.newDelivery(n.nearTaken(e), Delivered)
	for _, a := range n.standing.Recent {
		if a.Entry == e {
			d.History = append(d.History, a)
			d.Attempts = a.Number
		}
	}
	return d, len(d.History) > 0 && isSuccess(d.History[len(d.History)-1])
}

// isSuccess reports whether an attempt ended a delivery of a subscription.
func isSuccess(a domain.Attempt) bool {
	return (&domain.Policy{}).IsSuccess(domain.Answer{Status: a.Status}) && a.Error == ""
}

// recentEntries returns the entries of the last attempts, in order.
func (n *snapshot) recentEntries() []domain.EntryID {
	var all []domain.EntryID
	for _, a := range n.standing.Recent {
		all = append(all, a.Entry)
	}
	slices.SortFunc(all, domain.CompareEntries)
	return slices.Compact(all)
}

// findOpen returns the position of an entry that was taken and has not ended.
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

// addEvent adds the event of an entry to its delivery.
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
