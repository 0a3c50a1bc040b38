//go:build unix

package crashpoint

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// A ledger compares what was sent with what was fetched, and trusts nothing that the
// hub says about itself. Each actor has one client, so what it is given comes in an
// order that can be held to that of the senders at once.
//
// It is safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	events  map[string]*sentEvent // by id, which no two events share
	sent    map[stream]int
	given   map[stream]int
	open    map[string]*bundle  // by actor and cabinet
	bundles map[string]*bundle  // by actor and id
	told    map[string][]string // by actor: bundles of which the domain is to be told
	heard   map[string]bool
	missing map[string]int // by actor: events that were sent, and of which no Dequeue was answered
	wrong   []string
	changed chan struct{} // closed, and made anew, with each change
}

// A stream is what one sender sends into one cabinet: its order is kept.
type stream struct{ sender, actor, origin string }

type sentEvent struct {
	stream
	place  int
	bundle *bundle
}

type bundle struct {
	id, actor, origin string
	body              [sha256.Size]byte
	events            int
	closed            bool
}

func newLedger() *ledger {
	return &ledger{
		events: make(map[string]*sentEvent), sent: make(map[stream]int), given: make(map[stream]int),
		open: make(map[string]*bundle), bundles: make(map[string]*bundle),
		missing: make(map[string]int), told: make(map[string][]string), heard: make(map[string]bool), changed: make(chan struct{}),
	}
}

// send notes an event before it is sent.
func (l *ledger) send(s stream, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[id] = &sentEvent{stream: s, place: l.sent[s]}
	l.sent[s]++
	l.missing[s.actor]++
}

// peeked notes what an actor was given, and says what is wrong with it.
func (l *ledger) peeked(actor, id string, body []byte) error {
	var elements []struct{ ID string }
	if err := json.Unmarshal(body, &elements); err != nil || len(elements) == 0 {
		return l.fail("bundle %s of %s: its body is no list of events: %.200q, %v", id, actor, body, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := sha256.Sum256(body)
	if known := l.bundles[actor+" "+id]; known != nil {
		switch {
		case known.closed:
			return l.failed("bundle %s of %s: it comes again after its Dequeue", id, actor)
		case known.body != sum:
			return l.failed("bundle %s of %s: its body is not the same as before", id, actor)
		}
		return nil
	}
	b := &bundle{id: id, actor: actor, body: sum, events: len(elements)}
	l.bundles[actor+" "+id] = b
	for _, e := range elements {
		sent := l.events[e.ID]
		switch {
		case sent == nil || sent.actor != actor:
			return l.failed("bundle %s of %s: event %q was never sent to this actor", id, actor, e.ID)
		case sent.bundle != nil:
			return l.failed("bundle %s of %s: event %s was in bundle %s already", id, actor, e.ID, sent.bundle.id)
		case b.origin != "" && b.origin != sent.origin:
			return l.failed("bundle %s of %s: it has events of %s and of %s", id, actor, b.origin, sent.origin)
		case sent.place != l.given[sent.stream]:
			return l.failed("bundle %s of %s: of %v, event %d comes where event %d should", id, actor, sent.stream, sent.place, l.given[sent.stream])
		}
		b.origin, sent.bundle = sent.origin, b
		l.given[sent.stream]++
	}
	if before := l.open[actor+" "+b.origin]; before != nil && !before.closed {
		return l.failed("bundle %s of %s: bundle %s of %s is still open", id, actor, before.id, b.origin)
	}
	l.open[actor+" "+b.origin] = b
	return nil
}

// dequeued notes that a Dequeue was answered.
func (l *ledger) dequeued(actor, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+" "+id]
	b.closed = true
	l.missing[actor] -= b.events
	if b.origin == request {
		l.told[actor] = append(l.told[actor], id)
	}
	l.tell()
}

// noticed notes that the domain was told of a bundle, by its name for it.
func (l *ledger) noticed(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard[name] = true
	l.tell()
}

// tell wakes whoever waits for a change. The caller holds mu.
func (l *ledger) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// outstanding is how many events the actors have not confirmed, and what tells of a
// change.
func (l *ledger) outstanding(actors ...string) (n int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, actor := range actors {
		n += l.missing[actor]
	}
	return n, l.changed
}

// untold is the bundles of which the domain has still to be told, by its names for
// them, and what tells of a change.
func (l *ledger) untold() (names []string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for actor, ids := range l.told {
		l.told[actor] = slices.DeleteFunc(ids, func(id string) bool { return l.heard[id+"_"+actor] })
		for _, id := range l.told[actor] {
			names = append(names, id+"_"+actor)
		}
	}
	return names, l.changed
}

func (l *ledger) fail(format string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed(format, args...)
}

// failed notes what must never happen. The caller holds mu.
func (l *ledger) failed(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	l.wrong = append(l.wrong, text)
	return violation{text}
}

// A violation is what no crash excuses.
type violation struct{ text string }

func (v violation) Error() string { return v.text }

// verdict is all that is wrong once everything was fetched, and nothing is to come.
func (l *ledger) verdict() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong := slices.Clone(l.wrong)
	for id, e := range l.events {
		if e.bundle == nil || !e.bundle.closed {
			wrong = append(wrong, fmt.Sprintf("lost: event %s, %d of %v", id, e.place, e.stream))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// counts are what has gone through.
func (l *ledger) counts() (events, bundles int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events), len(l.bundles)
}
