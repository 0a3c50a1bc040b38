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

// A referenceLedger is the reference model of all mailboxes, as clients see them: what
// was sent and accepted, what was handed out, and what was confirmed. It trusts nothing
// that a hub reports about itself. To the judgement of package ledger it adds what
// operators may change (see orders.go) and what domains are notified of.
type referenceLedger struct {
	judge *ledger.Ledger

	mu      sync.Mutex
	events  map[string]*sentEvent // by id
	bundles map[string]*handed    // by actor and id
	settled bool                  // nothing more is sent
	done    chan struct{}

	unordered map[int]bool // senders whose events overtake each other
	queues    map[string]*operated
	lists     map[string]string // of ids, by bundle, for which content was asked
}

type sentEvent struct {
	event
	confirmedAt time.Time // zero: no bundle with it was confirmed
}

// handed is a bundle that an actor got.
type handed struct {
	id, actor   string
	by          string // the hub that has handed it out first
	body        []byte
	events      []*sentEvent
	asked       int           // how often its Dequeue was sent
	confirmed   bool          // and answered
	confirmedAt ledger.Moment // last
	notices     int           // that its domain got

	isPending bool // an operator has given an order about it, whose outcome is not known
	isTaken   bool // an operator has taken it back, or skipped it
	replays   int
}

// newLedger returns a ledger whose bundles come in order: a group has one open bundle at a
// time, which some client of the actor must get before it can be confirmed.
func newLedger() *referenceLedger {
	return &referenceLedger{
		judge:  ledger.New(ledger.Options{InOrder: true}),
		events: make(map[string]*sentEvent), bundles: make(map[string]*handed), done: make(chan struct{}),
		unordered: make(map[int]bool), lists: make(map[string]string), queues: make(map[string]*operated),
	}
}

// sent notes a batch that is about to be sent.
func (l *referenceLedger) sent(sender int, batch []event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range batch {
		l.events[e.ID] = &sentEvent{event: e}
		l.judge.Send(ledger.Event{Recipient: e.Recipient, ID: e.ID, Cabinet: e.cabinet(), Sender: sender, AnyOrder: l.unordered[sender], Unsure: true})
	}
}

// accepted notes that a batch is safe.
func (l *referenceLedger) accepted(batch []event) {
	for _, e := range batch {
		l.judge.Accept(e.Recipient, e.ID)
	}
}

// disorder notes that the events of a sender come in any order.
func (l *referenceLedger) disorder(sender int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unordered[sender] = true
}

// isOut reports whether an event was handed out.
func (l *referenceLedger) isOut(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.judge.IsReceived(l.events[id].Recipient, id)
}

// peekBegins returns the moment at which a Peek begins.
func (l *referenceLedger) peekBegins() ledger.Moment { return l.judge.Now() }

// peeked compares a bundle that was handed out, by a Peek that began at the moment asked,
// with what is known.
func (l *referenceLedger) peeked(actor, id string, r *reply, asked ledger.Moment, w *world) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, body := actor+"|"+id, r.body
	known := l.bundles[key]
	if known != nil && l.mayReplay(known) {
		if known.confirmed && asked >= known.confirmedAt {
			w.reached("a bundle that was confirmed was handed out again by an operator")
		}
		l.judge.Reopen(actor, id)
	}
	b := &handed{id: id, actor: actor, body: body, by: r.by}
	_, err := l.judge.Receive(actor, id, body, asked, func() ([]ledger.Element, error) { return l.read(b) })
	switch {
	case err != nil && known != nil:
		return fmt.Errorf("%w; it was %s, and is %s now", withRule(err), known.body, body)
	case err != nil:
		return withRule(err)
	case known == nil:
		l.bundles[key] = b
		return nil
	}
	w.reached("an open bundle was handed out again")
	if known.by != r.by {
		w.reached("an open bundle was handed out again by another hub")
	}
	return nil
}

// withRule puts the rule that is violated before an error of package ledger.
func withRule(err error) error {
	if v, ok := errors.AsType[*ledger.Violation](err); ok {
		return fmt.Errorf("%s: %w", v.Rule, err)
	}
	return err
}

// shown returns a bundle as package history needs it.
func (l *referenceLedger) shown(actor, id string) history.Bundle {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	first := &b.events[0].event
	shown := history.Bundle{ID: id, Group: groupOf(first.Origin), Cabinet: first.cabinet(), Body: string(b.body)}
	for _, e := range b.events {
		shown.Events = append(shown.Events, e.ID)
	}
	return shown
}

// read finds the events of a bundle in its body. The caller holds mu.
func (l *referenceLedger) read(b *handed) (all []ledger.Element, err error) {
	var lines []json.RawMessage
	if bytes.HasPrefix(b.body, []byte(madePrefix)) {
		for _, line := range madeLines(b.body) {
			lines = append(lines, line)
		}
	} else if err := json.Unmarshal(b.body, &lines); err != nil {
		return nil, fmt.Errorf("it has the body %q: %w", b.body, err)
	}
	for _, line := range lines {
		var got struct {
			event
			Of string `json:"of"` // in the payload of an event that travels inline
		}
		if err := json.Unmarshal(line, &got); err != nil {
			return nil, fmt.Errorf("it has the line %q: %w", line, err)
		}
		e := l.events[cmp.Or(got.ID, got.Of)]
		if e == nil {
			return nil, fmt.Errorf("it holds %q, which was never sent", line)
		}
		if got.ID != "" {
			want := e.event
			want.Sequence = got.Sequence
			if !same(&got.event, &want) {
				return nil, fmt.Errorf("event %s was sent as %+v, and came as %q", e.ID, e.event, line)
			}
		}
		b.events = append(b.events, e)
		all = append(all, ledger.Element{ID: e.ID, Sequence: got.Sequence})
	}
	return all, nil
}

func same(a, b *event) bool {
	x, _ := json.Marshal(a) // both were JSON before
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// dequeueBegins notes that a bundle may be confirmed from now on.
func (l *referenceLedger) dequeueBegins(actor, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bundles[actor+"|"+id].asked++
}

// mayBeGone reports whether a bundle may have been confirmed by another Dequeue than
// the one that is answered.
func (l *referenceLedger) mayBeGone(actor, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bundles[actor+"|"+id].asked > 1
}

// dequeued notes that a bundle is confirmed.
func (l *referenceLedger) dequeued(actor, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	if event, other := l.judge.Replaced(actor, id); event != "" && !l.mayReplay(b) {
		return fmt.Errorf("H7: bundle %s was confirmed after its event %s had come in bundle %s", id, event, other)
	}
	l.confirm(b)
	return nil
}

// confirm notes that a bundle is confirmed, or skipped. The caller holds mu.
func (l *referenceLedger) confirm(b *handed) {
	for _, id := range l.judge.Confirm(b.actor, b.id, false) {
		l.events[id].confirmedAt = time.Now()
	}
	b.confirmed, b.confirmedAt = true, l.judge.Now()
	l.look()
}

// opens has the ledger expect more to be sent.
func (l *referenceLedger) opens() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled, l.done = false, make(chan struct{})
}

// isKept reports whether an event was not confirmed so long ago that its id may be
// forgotten soon.
func (l *referenceLedger) isKept(id string, retention time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.events[id]
	return e.confirmedAt.IsZero() || retention == 0 || time.Since(e.confirmedAt) < retention/2
}

// drained is closed once nothing more is sent, and all that was is confirmed.
func (l *referenceLedger) drained() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = true
	l.look()
	return l.done
}

// look closes done once all is confirmed. The caller holds mu.
func (l *referenceLedger) look() {
	if l.settled && l.judge.Outstanding() == 0 {
		select {
		case <-l.done:
		default:
			close(l.done)
		}
	}
}

// missing names what was accepted and never confirmed.
func (l *referenceLedger) missing() error {
	lost := l.judge.Undelivered()
	return fmt.Errorf("H1: %d events are missing: %s", len(lost), strings.Join(lost, "; "))
}

// check judges all that was delivered.
func (l *referenceLedger) check() error {
	if v := l.judge.Check(); !v.OK() {
		return fmt.Errorf("what the actors got is not what was sent: %s\n%s", v, v.Details())
	}
	return nil
}
