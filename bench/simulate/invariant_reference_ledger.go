package simulate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/ledger"
	"github.com/messagehub/messagehub/bench/simulate/history"
)

// A referenceLedger is the reference model of all mailboxes. It records which events clients sent, which of these
// events hubs accepted, and which bundles clients received and confirmed. It uses no state that hubs report. In
// addition to package ledger, it models the effects of operators' orders (see invariant_operator_orders.go) and the
// notices to domains.
type referenceLedger struct {
	checker *ledger.Ledger

	mu      sync.Mutex
	events  map[string]*sentEvent      // by id
	bundles map[string]*receivedBundle // bundles that actors received, by actor and id
	allSent bool                       // true when no further event will be sent
	done    chan struct{}

	unordered map[int]bool // senders whose events may overtake each other
	queues    map[string]*operatedQueue
	lists     map[string]string // event ids of content requests, by bundle
}

type sentEvent struct {
	sentData
	confirmedAt time.Time // zero until the event is confirmed
	isExpired   bool      // true if a bundle contains the event again after the retention; false after its Dequeue
}

// A receivedBundle is a bundle that an actor received.
type receivedBundle struct {
	id, actor   string
	hub         string // hub that first returned the bundle
	body        []byte
	events      []*sentEvent
	dequeues    int           // number of Dequeue requests for the bundle
	isConfirmed bool          // true after a Dequeue succeeded
	confirmedAt ledger.Moment // moment at which the last Dequeue succeeded
	notices     int           // number of notices about the bundle that its domain received

	isPending bool // true while the outcome of an order about the bundle is unknown
	isTaken   bool // true after an operator released or skipped the bundle
	replays   int
}

// newReferenceLedger returns a ledger that expects bundles in order: a group has one open bundle at a time, and a
// client of the actor must receive the bundle before any client can confirm it.
func newReferenceLedger() *referenceLedger {
	return &referenceLedger{
		checker: ledger.New(ledger.Options{InOrder: true}),
		events:  make(map[string]*sentEvent), bundles: make(map[string]*receivedBundle), done: make(chan struct{}),
		unordered: make(map[int]bool), lists: make(map[string]string), queues: make(map[string]*operatedQueue),
	}
}

// noteSent records a batch that is about to be sent.
func (l *referenceLedger) noteSent(sender int, batch []sentData) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range batch {
		l.events[e.ID] = &sentEvent{sentData: e}
		l.checker.Send(ledger.Event{Recipient: e.Recipient, ID: e.ID, Cabinet: e.cabinetName(), Sender: sender, AnyOrder: l.unordered[sender], Unsure: true})
	}
}

// noteAccepted records that a batch was accepted.
func (l *referenceLedger) noteAccepted(batch []sentData) {
	for _, e := range batch {
		l.checker.Accept(e.Recipient, e.ID)
	}
}

// allowAnyOrder allows the events of a sender to arrive in any order.
func (l *referenceLedger) allowAnyOrder(sender int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unordered[sender] = true
}

// isReceived reports whether an actor has received an event.
func (l *referenceLedger) isReceived(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checker.IsReceived(l.events[id].Recipient, id)
}

// beginPeek returns the moment at which a Peek begins.
func (l *referenceLedger) beginPeek() ledger.Moment { return l.checker.Now() }

// notePeeked records a bundle that a Peek returned, and compares it with the ledger. The Peek began at the moment start.
func (l *referenceLedger) notePeeked(actor, id string, r *hubReply, start ledger.Moment, sim *simulation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, body := actor+"|"+id, r.body
	known := l.bundles[key]
	if known != nil && l.canReplay(known) {
		if known.isConfirmed && start >= known.confirmedAt {
			sim.MarkReached("a confirmed bundle was handed out again after a replay")
		}
		l.checker.Reopen(actor, id)
	}
	b := &receivedBundle{id: id, actor: actor, body: body, hub: r.by}
	elements, unreadable := l.readEvents(b)
	if known == nil {
		l.expireEvents(b.events, sim.plan.retention)
	}
	_, err := l.checker.Receive(actor, id, body, start, func() ([]ledger.Element, error) { return elements, unreadable })
	switch {
	case err != nil && known != nil:
		return fmt.Errorf("%w; before, it was %s, and now it is %s", withRule(err), known.body, body)
	case err != nil:
		return withRule(err)
	case known == nil:
		l.bundles[key] = b
		return nil
	}
	sim.MarkReached("an open bundle was handed out again")
	if known.hub != r.by {
		sim.MarkReached("an open bundle was handed out again by another hub")
	}
	return nil
}

// !!
func withRule(err error) error {
	if v, ok := errors.AsType[*ledger.Violation](err); ok {
		return fmt.Errorf("%s: %w", v.Rule, err)
	}
	return err
}

// shownBundle returns a bundle in the form of package history.
func (l *referenceLedger) shownBundle(actor, id string) history.Bundle {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	first := &b.events[0].sentData
	shown := history.Bundle{ID: id, Group: groupOf(first.Origin), Cabinet: first.cabinetName(), Body: string(b.body)}
	for _, e := range b.events {
		shown.Events = append(shown.Events, e.ID)
	}
	return shown
}

// readEvents returns the events in the body of a bundle. The caller holds mu.
func (l *referenceLedger) readEvents(b *receivedBundle) (all []ledger.Element, err error) {
	var lines []json.RawMessage
	if bytes.HasPrefix(b.body, []byte(requestedPrefix)) {
		for _, line := range requestedLines(b.body) {
			lines = append(lines, line)
		}
	} else if err := json.Unmarshal(b.body, &lines); err != nil {
		return nil, fmt.Errorf("its body cannot be read: %q: %w", b.body, err)
	}
	for _, line := range lines {
		var got struct {
			sentData
			Of string `json:"of"` // id of the event, in the payload of an inline event
		}
		if err := json.Unmarshal(line, &got); err != nil {
			return nil, fmt.Errorf("its line cannot be read: %q: %w", line, err)
		}
		e := l.events[cmp.Or(got.ID, got.Of)]
		if e == nil {
			return nil, fmt.Errorf("it has an event that was never sent: %q", line)
		}
		if got.ID != "" {
			want := e.sentData
			want.Sequence = got.Sequence
			if !isSameEvent(&got.sentData, &want) {
				return nil, fmt.Errorf("event %s was sent as %+v, but delivered as %q", e.ID, e.sentData, line)
			}
		}
		b.events = append(b.events, e)
		all = append(all, ledger.Element{ID: e.ID, Sequence: got.Sequence})
	}
	return all, nil
}

// expireEvents allows one more bundle for the events that were confirmed longer than the retention ago: the hub no
// longer stores their ids. If the completion of a message fails, the bus delivers the message again, and an outage can
// delay its next Save for longer than a short retention. The caller holds mu.
func (l *referenceLedger) expireEvents(events []*sentEvent, retention time.Duration) {
	for _, e := range events {
		if retention > 0 && !e.confirmedAt.IsZero() && time.Since(e.confirmedAt) >= retention {
			l.checker.Expire(e.Recipient, e.ID)
			e.isExpired = true
		}
	}
}

func isSameEvent(a, b *sentData) bool {
	x, _ := json.Marshal(a) // both values were decoded from JSON
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// beginDequeue records that a Dequeue of a bundle is about to be sent.
func (l *referenceLedger) beginDequeue(actor, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bundles[actor+"|"+id].dequeues++
}

// canBeGone reports whether an earlier Dequeue may have confirmed a bundle.
func (l *referenceLedger) canBeGone(actor, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bundles[actor+"|"+id].dequeues > 1
}

// noteDequeued records that a Dequeue of a bundle succeeded.
func (l *referenceLedger) noteDequeued(actor, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	if event, other := l.checker.Replaced(actor, id); event != "" && !l.canReplay(b) {
		return fmt.Errorf("H7: bundle %s was confirmed after its event %s had been delivered in bundle %s", id, event, other)
	}
	l.confirmBundle(b)
	return nil
}

// confirmBundle records that a bundle was confirmed or skipped. The caller holds mu.
func (l *referenceLedger) confirmBundle(b *receivedBundle) {
	for _, id := range l.checker.Confirm(b.actor, b.id, false) {
		l.events[id].confirmedAt = time.Now()
	}
	for _, e := range b.events {
		if e.isExpired {
			e.confirmedAt, e.isExpired = time.Now(), false
		}
	}
	b.isConfirmed, b.confirmedAt = true, l.checker.Now()
	l.closeIfDrained()
}

// expectMore records that more events will be sent.
func (l *referenceLedger) expectMore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.allSent, l.done = false, make(chan struct{})
}

// isKept reports whether the hub certainly stores the id of an event: the event is not confirmed, or was confirmed less
// than half a retention ago.
func (l *referenceLedger) isKept(id string, retention time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.events[id]
	return e.confirmedAt.IsZero() || retention == 0 || time.Since(e.confirmedAt) < retention/2
}

// whenDrained returns a channel that is closed once all events are confirmed. No further event may be sent.
func (l *referenceLedger) whenDrained() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.allSent = true
	l.closeIfDrained()
	return l.done
}

// closeIfDrained closes done if all events are confirmed. The caller holds mu.
func (l *referenceLedger) closeIfDrained() {
	if l.allSent && l.checker.Outstanding() == 0 {
		select {
		case <-l.done:
		default:
			close(l.done)
		}
	}
}

// missingError returns an error that lists the accepted events that were never confirmed.
func (l *referenceLedger) missingError() error {
	lost := l.checker.Undelivered()
	return fmt.Errorf("H1: %d events are missing: %s", len(lost), strings.Join(lost, "; "))
}

// verifyDeliveries returns an error unless the actors received exactly the accepted events.
func (l *referenceLedger) verifyDeliveries() error {
	if v := l.checker.Check(); !v.OK() {
		return fmt.Errorf("the actors did not receive what was sent: %s\n%s", v, v.Details())
	}
	return nil
}
