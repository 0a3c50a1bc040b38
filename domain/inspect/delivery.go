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
	Calling   State = "calling"   // a node calls the receiver now or immediately afterwards
	Retrying  State = "retrying"  // an attempt failed, and the next attempt waits
	Delivered State = "delivered" // the receiver accepted the message
	Dead      State = "dead"      // the delivery is a dead letter
	Filtered  State = "filtered"  // the filter does not match the message
	Expired   State = "expired"   // the message was removed from the stream before the cursor reached it
	Ended     State = "ended"     // the delivery has ended, and its outcome is no longer stored
)

// States lists the states that a Query can name.
var States = []State{Waiting, Calling, Retrying, Delivered, Dead}

// A Delivery is the delivery of an entry of the stream to the receiver of a subscription.
type Delivery struct {
	ID       domain.DeliveryID
	State    State
	Inferred bool             // no result is stored: the state was inferred from the cursor and the current filter
	Attempts int              // number of attempts whose results are known
	History  []domain.Attempt // the last attempts, the oldest first
	Due      time.Time        // time at which the next attempt is due; zero if no attempt is due
	Reason   string           // reason of a dead letter or an expired message

	Published time.Time // zero: the time is unknown
	Event     *Event    // nil: the message was not read, or was removed

	position domain.Position
	isPoison bool
}

// An Event has the attributes by which people identify a message.
type Event struct {
	ID, Type, Source string // "": the message does not have the attribute
}

// fromRetry returns the delivery that a retry or a dead letter describes.
func (n *snapshot) fromRetry(r *domain.Retry) Delivery {
	d := n.newDelivery(r.Position, Retrying)
	d.Attempts, d.History, d.Published, d.Due = r.Attempts, r.History, r.Published, r.Due
	if r.Dead {
		d.State, d.Reason, d.Due, d.isPoison = Dead, r.Reason, time.Time{}, r.IsPoison()
	}
	return d
}

// fromOpen returns the delivery of an open entry: the cursor has reached the entry, and the delivery
// has not ended.
func (n *snapshot) fromOpen(at domain.Position) Delivery {
	if n.mayBeCalled() {
		return n.newDelivery(at, Calling)
	}
	return n.newDelivery(at, Waiting)
}

// fromRecent returns a delivery with the stored attempts of an entry. It returns false unless the
// last of these attempts succeeded.
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

// isSuccess reports whether the receiver of a subscription accepted an attempt.
func isSuccess(a domain.Attempt) bool {
	return (&domain.Policy{}).IsSuccess(domain.Answer{Status: a.Status}) && a.Error == ""
}

// recentEntries returns the ids of the entries of the last attempts, in the order of the stream.
func (n *snapshot) recentEntries() []domain.EntryID {
	var all []domain.EntryID
	for _, a := range n.standing.Recent {
		all = append(all, a.Entry)
	}
	slices.SortFunc(all, domain.CompareEntries)
	return slices.Compact(all)
}

// findOpen returns the position of an entry that the cursor has reached, if its delivery has not ended.
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
