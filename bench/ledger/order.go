package ledger

import (
	"cmp"
	"fmt"
	"slices"
)

// A bundleOrder holds the positions of the delivered bundles in each cabinet and
// stream.
type bundleOrder struct {
	sent       map[senderStream][]*recordedEvent
	next       map[senderStream]int           // position of the next expected event
	last       map[cabinetName]int64          // last delivered sequence number
	bySequence map[sequenceKey]*recordedEvent // events by their sequence numbers
}

type cabinetName struct{ recipient, name string }

type sequenceKey struct {
	recipient string
	number    int64
}

func newOrder(sent map[senderStream][]*recordedEvent) *bundleOrder {
	return &bundleOrder{sent: sent, next: make(map[senderStream]int), last: make(map[cabinetName]int64), bySequence: make(map[sequenceKey]*recordedEvent)}
}

// rewindBefore moves the expected position back before a bundle whose events are
// delivered again, because their earlier bundle was withdrawn.
func (o *bundleOrder) rewindBefore(b *Bundle) {
	for i, e := range b.events {
		if e.bundle == nil || !e.bundle.isWithdrawn {
			continue
		}
		s, c := e.streamOf(), cabinetName{e.Recipient, e.Cabinet}
		if !e.wasExpired {
			o.next[s] = min(o.next[s], e.position)
		}
		if n := b.Elements[i].Sequence; n > 0 {
			o.last[c] = min(o.last[c], n-1)
		}
	}
}

// addBundle advances past the events of a bundle, and returns violations of the order.
func (o *bundleOrder) addBundle(b *Bundle) (found []string) {
	for i, e := range b.events {
		if n := b.Elements[i].Sequence; n > 0 {
			found = append(found, o.addSequence(e, n)...)
		}
		if e.AnyOrder || e.wasExpired {
			continue
		}
		s := e.streamOf()
		if next := o.nextCertain(s, e.position); e.position != next {
			found = append(found, fmt.Sprintf("sender %d: event %d comes where event %d should", e.Sender, e.position, next))
		}
		o.next[s] = e.position + 1
	}
	return found
}

// addSequence compares the sequence number of an event with the earlier numbers in its cabinet.
func (o *bundleOrder) addSequence(e *recordedEvent, n int64) (found []string) {
	c, key := cabinetName{e.Recipient, e.Cabinet}, sequenceKey{e.Recipient, n}
	if o.last[c] >= n {
		found = append(found, fmt.Sprintf("sequence number %d comes after %d", n, o.last[c]))
	}
	o.last[c] = n
	if other := o.bySequence[key]; other != nil && other != e {
		found = append(found, fmt.Sprintf("events %s and %s both have sequence number %d", other.ID, e.ID, n))
	}
	o.bySequence[key] = e
	return found
}

// nextCertain returns the position of the next event of a stream that must be delivered. It skips
// events before position that may be missing or may come at any position.
func (o *bundleOrder) nextCertain(s senderStream, position int) int {
	next := o.next[s]
	for next < position && (o.sent[s][next].Unsure || o.sent[s][next].wasExpired) {
		next++
	}
	return next
}

// findDisorder sorts the bundles of a cabinet by their events, and returns bundles that were
// delivered in a different order. It reports a bundle only if its first request began after a later
// bundle was confirmed, because concurrent requests have no order.
func findDisorder(bundles []*Bundle) (found []string) {
	numbered := !slices.ContainsFunc(bundles, func(b *Bundle) bool { return b.Elements[0].Sequence == 0 })
	front := func(b *Bundle) int64 { // sequence numbers and positions cannot be compared with each other
		if numbered {
			return b.Elements[0].Sequence
		}
		return int64(b.events[0].position)
	}
	slices.SortFunc(bundles, func(a, b *Bundle) int { return cmp.Compare(front(a), front(b)) })
	var confirmed Moment // earliest confirmation among the later bundles
	for _, b := range slices.Backward(bundles) {
		if confirmed > 0 && b.start >= confirmed {
			found = append(found, fmt.Sprintf("the bundle at %d came after a later one was confirmed", front(b)))
		}
		if confirmed == 0 || b.confirmed < confirmed {
			confirmed = b.confirmed
		}
	}
	return found
}
