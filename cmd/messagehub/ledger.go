package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A ledger compares what was sent with what was received. It trusts nothing that
// the hub says about itself: an event counts as delivered when it was in the body
// of a bundle whose Dequeue was answered.
//
// It is safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	events  map[eventKey]*sentRecord
	streams map[streamKey]int                  // events so far
	bundles map[string]map[string]*bundleState // by actor and id
	wrong   []string                           // what nobody may ever see
}

type eventKey struct{ recipient, id string }

// A stream is what one sender sends into one cabinet: its order is kept.
type streamKey struct {
	sender             int
	recipient, cabinet string
}

type digest [sha256.Size]byte

type sentRecord struct {
	stream  streamKey
	place   int // in its stream
	payload digest
	times   int // delivered
}

// bundleState is all that is known of a bundle.
type bundleState struct {
	content   []*sentRecord
	sequences []int64 // none in an inline bundle
	body      digest
	asked     time.Time // when the first request that brought it was made
	confirmed time.Time // when its Dequeue was answered; zero: never
	ok        int       // how often Dequeue said 200
}

func newLedger() *ledger {
	return &ledger{
		events:  make(map[eventKey]*sentRecord),
		streams: make(map[streamKey]int),
		bundles: make(map[string]map[string]*bundleState),
	}
}

// send notes an event before it is sent. The events of one sender must be noted
// in the order in which they are sent.
func (l *ledger) send(sender int, e *marketEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stream := streamKey{sender, e.Recipient, e.cabinet()}
	l.events[eventKey{e.Recipient, e.ID}] = &sentRecord{
		stream: stream, place: l.streams[stream], payload: sha256.Sum256(e.Payload),
	}
	l.streams[stream]++
}

// peeked notes a bundle that actor got by a request made at the time asked. It
// reports what is wrong with it at once.
func (l *ledger) peeked(actor, id string, body []byte, asked time.Time) error {
	sum := sha256.Sum256(body)
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.bundles[actor]
	if own == nil {
		own = make(map[string]*bundleState)
		l.bundles[actor] = own
	}
	if known, ok := own[id]; ok {
		if known.body != sum {
			return l.fail("bundle %s of %s: its body is not the same as before", id, actor)
		}
		if asked.Before(known.asked) {
			known.asked = asked
		}
		return nil
	}
	b := &bundleState{body: sum, asked: asked}
	own[id] = b
	if err := l.read(b, actor, body); err != nil {
		return l.fail("bundle %s of %s: %v", id, actor, err)
	}
	return nil
}

// read finds the events of a body: of a manifest or, if its elements have no id,
// of payloads that bear their event's id.
func (l *ledger) read(b *bundleState, actor string, body []byte) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(body, &elements); err != nil {
		return fmt.Errorf("its body is not JSON: %w", err)
	}
	for i, text := range elements {
		var e struct {
			ID        string          `json:"id"`
			Recipient string          `json:"recipient"`
			Sequence  int64           `json:"sequence"`
			Payload   json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		if e.ID == "" {
			e.ID, e.Recipient, e.Payload = documentID(text), actor, text
		} else {
			b.sequences = append(b.sequences, e.Sequence)
		}
		sent, ok := l.events[eventKey{actor, e.ID}]
		switch {
		case !ok || e.Recipient != actor:
			return fmt.Errorf("event %q was never sent to this actor", e.ID)
		case sha256.Sum256(e.Payload) != sent.payload:
			return fmt.Errorf("event %s: its payload is not the one that was sent", e.ID)
		}
		b.content = append(b.content, sent)
	}
	return nil
}

// documentID returns the mRID at the start of a market document.
func documentID(document []byte) string {
	_, rest, _ := bytes.Cut(document, []byte(`_MarketDocument":{"mRID":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}

// dequeued notes that the Dequeue of a bundle was answered. ok says that this
// answer was a 200; otherwise it was a 404 after an answer that was lost, or
// after another client of the actor.
func (l *ledger) dequeued(actor, id string, ok bool, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor][id]
	if ok {
		b.ok++
	}
	if b.confirmed.IsZero() || at.Before(b.confirmed) {
		b.confirmed = at
	}
}

// fail notes what must never happen. The caller holds mu.
func (l *ledger) fail(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	l.wrong = append(l.wrong, text)
	return fmt.Errorf("%s", text)
}

// A verdict is what a ledger has come to.
type verdict struct {
	lost, duplicated []string // ids
	disorder         []string // what is not in order
	wrong            []string // whatever else must never happen
}

func (v *verdict) ok() bool {
	return len(v.lost)+len(v.duplicated)+len(v.disorder)+len(v.wrong) == 0
}

func (v *verdict) String() string {
	order := "order kept"
	if n := len(v.disorder); n > 0 {
		order = fmt.Sprintf("order broken in %d places", n)
	}
	text := fmt.Sprintf("%d lost, %d duplicated, %s", len(v.lost), len(v.duplicated), order)
	if n := len(v.wrong); n > 0 {
		text += fmt.Sprintf(", %d other faults", n)
	}
	return text
}

// details lists the first of each sort.
func (v *verdict) details() string {
	var b strings.Builder
	for _, part := range []struct {
		name  string
		items []string
	}{{"lost", v.lost}, {"duplicated", v.duplicated}, {"order", v.disorder}, {"fault", v.wrong}} {
		for _, item := range part.items[:min(len(part.items), 20)] {
			fmt.Fprintf(&b, "%s: %s\n", part.name, item)
		}
		if more := len(part.items) - 20; more > 0 {
			fmt.Fprintf(&b, "%s: and %d more\n", part.name, more)
		}
	}
	return b.String()
}

// check judges everything noted so far, as if nothing more were to come.
func (l *ledger) check() *verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := &verdict{wrong: l.wrong}
	cabinets := make(map[[2]string][]*bundleState)
	for actor, own := range l.bundles {
		for id, b := range own {
			if b.confirmed.IsZero() || len(b.content) == 0 {
				continue // peeked and never confirmed, or read() has complained
			}
			if b.ok > 1 {
				v.wrong = append(v.wrong, fmt.Sprintf("bundle %s of %s: dequeued %d times", id, actor, b.ok))
			}
			for _, e := range b.content {
				e.times++
			}
			key := [2]string{actor, b.content[0].stream.cabinet}
			cabinets[key] = append(cabinets[key], b)
		}
	}
	for key, e := range l.events {
		switch {
		case e.times == 0:
			v.lost = append(v.lost, key.recipient+" "+key.id)
		case e.times > 1:
			v.duplicated = append(v.duplicated, key.recipient+" "+key.id)
		}
		e.times = 0
	}
	for key, bundles := range cabinets {
		v.disorder = append(v.disorder, disorder(key, bundles)...)
	}
	for _, list := range [][]string{v.lost, v.duplicated, v.disorder, v.wrong} {
		slices.Sort(list)
	}
	return v
}

// disorder puts the bundles of a cabinet in the order of their events, and says
// where this order is not the one in which they were sent or received.
func disorder(key [2]string, bundles []*bundleState) (found []string) {
	report := func(format string, args ...any) {
		found = append(found, strings.Join(key[:], " ")+": "+fmt.Sprintf(format, args...))
	}
	front := func(b *bundleState) int64 {
		if len(b.sequences) > 0 {
			return b.sequences[0]
		}
		return int64(b.content[0].place)
	}
	slices.SortFunc(bundles, func(a, b *bundleState) int { return cmp.Compare(front(a), front(b)) })
	// A bundle is handed out only when those before it are confirmed. Clocks are
	// read around the requests, so only what is certain is reported: a bundle
	// that nobody had asked for when a later one was confirmed.
	var confirmed time.Time // the first confirmation among the later bundles
	for _, b := range slices.Backward(bundles) {
		if !confirmed.IsZero() && b.asked.After(confirmed) {
			report("the bundle at %d came after a later one was confirmed", front(b))
		}
		if confirmed.IsZero() || b.confirmed.Before(confirmed) {
			confirmed = b.confirmed
		}
	}
	var last int64
	places := make(map[streamKey]int)
	for _, b := range bundles {
		for i, e := range b.content {
			if e.stream.cabinet != key[1] {
				report("the bundle at %d has an event of cabinet %s", front(b), e.stream.cabinet)
			}
			if len(b.sequences) > 0 {
				if b.sequences[i] <= last {
					report("sequence number %d comes after %d", b.sequences[i], last)
				}
				last = b.sequences[i]
			}
			if next := places[e.stream]; e.place != next {
				report("sender %d: event %d comes where event %d should", e.stream.sender, e.place, next)
			}
			places[e.stream] = e.place + 1
		}
	}
	return found
}

// size returns how many events a bundle has.
func (l *ledger) size(actor, id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bundles[actor][id].content)
}
