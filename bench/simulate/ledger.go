package simulate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/history"
)

// A ledger is the reference model of all mailboxes, as those outside see them: what
// was sent and accepted, what was handed out, and what was confirmed. It trusts
// nothing that a hub says about itself.
type ledger struct {
	mu      sync.Mutex
	events  map[string]*sentEvent // by id
	bundles map[string]*handed    // by actor and id
	left    int                   // events that were accepted and are not confirmed
	settled bool                  // nothing more is sent
	done    chan struct{}

	unordered map[int]bool // senders whose events overtake each other
	queues    map[string]*operated
	lists     map[string]string // of ids, by bundle, for which content was asked
}

type sentEvent struct {
	event
	sender   int
	place    int // among all that were sent
	accepted bool
	bundle   *handed
	gone     bool // its bundle was confirmed
	wentAt   time.Time
}

// handed is a bundle that an actor got.
type handed struct {
	id, actor string
	turn      int    // among all that were handed out
	by        string // the hub that has handed it out first
	body      []byte
	events    []*sentEvent
	sequences []int64
	asked     int  // how often its Dequeue was sent
	confirmed bool // and answered
	notices   int  // that its domain got

	isPending    bool // an operator has given an order about it, whose outcome is not known
	isTaken      bool // an operator has taken it back, or skipped it
	mayComeAgain bool // its events, in another bundle
	replays      int
}

func newLedger() *ledger {
	return &ledger{events: make(map[string]*sentEvent), bundles: make(map[string]*handed), done: make(chan struct{}), unordered: make(map[int]bool), lists: make(map[string]string), queues: make(map[string]*operated)}
}

// sent notes a batch that is about to be sent.
func (l *ledger) sent(sender int, batch []event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range batch {
		l.events[e.ID] = &sentEvent{event: e, sender: sender, place: len(l.events)}
	}
}

// accepted notes that a batch is safe.
func (l *ledger) accepted(batch []event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range batch {
		if s := l.events[e.ID]; !s.accepted {
			s.accepted = true
			if !s.gone {
				l.left++
			}
		}
	}
}

// disorder notes that the events of a sender come in any order.
func (l *ledger) disorder(sender int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unordered[sender] = true
}

// isOut reports whether an event was handed out.
func (l *ledger) isOut(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[id].bundle != nil
}

// peekBegins returns what was confirmed before a Peek began.
func (l *ledger) peekBegins(actor string) map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	confirmed := make(map[string]bool)
	for _, b := range l.bundles {
		if b.actor == actor && b.confirmed {
			confirmed[b.id] = true
		}
	}
	return confirmed
}

// peeked holds a bundle that was handed out to what is known.
func (l *ledger) peeked(actor, id string, r *reply, confirmed map[string]bool, w *world) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, body := actor+"|"+id, r.body
	if confirmed[id] {
		if !l.mayReplay(l.bundles[key]) {
			return fmt.Errorf("H7: bundle %s was handed out to %s after its Dequeue had been answered", id, actor)
		}
		w.reached("a bundle that was confirmed was handed out again by an operator")
	}
	if known, ok := l.bundles[key]; ok {
		if !bytes.Equal(known.body, body) {
			return fmt.Errorf("H6: bundle %s was %s, and is %s now", id, known.body, body)
		}
		w.reached("an open bundle was handed out again")
		if known.by != r.by {
			w.reached("an open bundle was handed out again by another hub")
		}
		return nil
	}
	b := &handed{id: id, actor: actor, turn: len(l.bundles), body: body, by: r.by}
	if err := l.read(b); err != nil {
		return err
	}
	l.bundles[key] = b
	return nil
}

// shown is what package history wants to know of a bundle.
func (l *ledger) shown(actor, id string) history.Bundle {
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

// read finds the events of a bundle in its body.
func (l *ledger) read(b *handed) error {
	var lines []json.RawMessage
	if bytes.HasPrefix(b.body, []byte(madePrefix)) {
		for _, line := range madeLines(b.body) {
			lines = append(lines, line)
		}
	} else if err := json.Unmarshal(b.body, &lines); err != nil {
		return fmt.Errorf("bundle %s has the body %q: %w", b.id, b.body, err)
	}
	if len(lines) == 0 {
		return fmt.Errorf("bundle %s has no events", b.id)
	}
	for _, line := range lines {
		var got struct {
			event
			Of string `json:"of"` // in the payload of an event that travels inline
		}
		if err := json.Unmarshal(line, &got); err != nil {
			return fmt.Errorf("bundle %s has the line %q: %w", b.id, line, err)
		}
		e, ok := l.events[cmp.Or(got.ID, got.Of)]
		switch {
		case !ok:
			return fmt.Errorf("H1: bundle %s holds %q, which nobody has sent", b.id, line)
		case e.Recipient != b.actor:
			return fmt.Errorf("I11: bundle %s of %s holds an event for %s", b.id, b.actor, e.Recipient)
		case e.bundle != nil && e.bundle != b && !e.bundle.mayComeAgain:
			return fmt.Errorf("H2: event %s is in bundle %s and in bundle %s", e.ID, e.bundle.id, b.id)
		case e.bundle == b:
			return fmt.Errorf("H2: event %s is in bundle %s twice", e.ID, b.id)
		case len(b.events) > 0 && e.cabinet() != b.events[0].cabinet():
			return fmt.Errorf("bundle %s mixes cabinets", b.id)
		}
		if got.ID != "" {
			want := e.event
			want.Sequence = got.Sequence
			if !same(&got.event, &want) {
				return fmt.Errorf("event %s was sent as %+v, and came as %q", e.ID, e.event, line)
			}
			if n := len(b.sequences); n > 0 && b.sequences[n-1] >= got.Sequence {
				return fmt.Errorf("H3: bundle %s has sequence %d behind %d", b.id, got.Sequence, b.sequences[n-1])
			}
			b.sequences = append(b.sequences, got.Sequence)
		}
		e.bundle = b
		b.events = append(b.events, e)
	}
	return nil
}

func same(a, b *event) bool {
	x, _ := json.Marshal(a) // both were JSON before
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// dequeueBegins notes that a bundle may be confirmed from now on.
func (l *ledger) dequeueBegins(actor, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bundles[actor+"|"+id].asked++
}

// mayBeGone reports whether a bundle may have been confirmed by another Dequeue than
// the one that is answered.
func (l *ledger) mayBeGone(actor, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bundles[actor+"|"+id].asked > 1
}

// dequeued notes that a bundle is confirmed.
func (l *ledger) dequeued(actor, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	for _, e := range b.events {
		if e.bundle != b && !l.mayReplay(b) {
			return fmt.Errorf("H7: bundle %s was confirmed after its event %s had come in bundle %s", id, e.ID, e.bundle.id)
		}
	}
	l.confirm(b)
	return nil
}

func (l *ledger) confirm(b *handed) {
	b.confirmed = true
	for _, e := range b.events {
		if e.accepted && !e.gone && e.bundle == b {
			l.left--
		}
		if e.bundle == b && !e.gone {
			e.gone, e.wentAt = true, time.Now()
		}
	}
	l.look()
}

// opens has the ledger expect more to be sent.
func (l *ledger) opens() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled, l.done = false, make(chan struct{})
}

// isKept reports whether an event was not confirmed so long ago that its id may be
// forgotten soon.
func (l *ledger) isKept(id string, retention time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.events[id]
	return !e.gone || retention == 0 || time.Since(e.wentAt) < retention/2
}

// drained is closed once nothing more is sent, and all that was is confirmed.
func (l *ledger) drained() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = true
	l.look()
	return l.done
}

func (l *ledger) look() {
	if l.settled && l.left == 0 {
		select {
		case <-l.done:
		default:
			close(l.done)
		}
	}
}

// missing names what was accepted and never confirmed.
func (l *ledger) missing() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lost []string
	for _, e := range l.events {
		if e.accepted && !e.gone {
			where := "in no bundle"
			if e.bundle != nil {
				where = "in bundle " + e.bundle.id
			}
			lost = append(lost, fmt.Sprintf("%s of %s, %s", e.ID, e.cabinet(), where))
		}
	}
	slices.Sort(lost)
	return fmt.Errorf("H1: %d events are missing: %s", len(lost), strings.Join(lost, "; "))
}

// check holds all that was delivered to the order in which it was sent. Bundles are
// taken in the order in which they were first handed out: a group has one at a time, so
// that is the order of their events, also of those that say no sequence numbers.
func (l *ledger) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	type stream struct {
		cabinet string
		sender  int
	}
	last := make(map[stream]*sentEvent)
	numbers := make(map[string]int64) // the highest of a cabinet
	taken := make(map[string]string)
	for _, b := range slices.SortedFunc(maps.Values(l.bundles), func(a, b *handed) int { return cmp.Compare(a.turn, b.turn) }) {
		for i, e := range b.events {
			if e.bundle != b { // it was taken back
				continue
			}
			if i < len(b.sequences) {
				n := b.sequences[i]
				place := fmt.Sprintf("%s|%d", b.actor, n)
				if other, ok := taken[place]; ok {
					return fmt.Errorf("H3: events %s and %s of %s both have sequence %d", other, e.ID, b.actor, n)
				}
				taken[place] = e.ID
				if n <= numbers[e.cabinet()] {
					return fmt.Errorf("H3: bundle %s brings sequence %d behind %d", b.id, n, numbers[e.cabinet()])
				}
				numbers[e.cabinet()] = n
			}
			s := stream{e.cabinet(), e.sender}
			if before := last[s]; before != nil && before.place > e.place && !l.unordered[e.sender] {
				return fmt.Errorf("H3: event %s came behind %s, which was sent later", e.ID, before.ID)
			}
			last[s] = e
		}
	}
	return nil
}
