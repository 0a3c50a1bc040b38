package ledger

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Options configure a Ledger.
type Options struct {
	// InOrder promises that Receive is called in the order in which the hub delivers the
	// bundles of an actor. Then Receive also checks this order.
	InOrder bool
}

// A Ledger holds the events that were sent and the bundles that were received. It is safe
// for concurrent use.
type Ledger struct {
	options Options

	mu          sync.Mutex
	now         Moment
	events      map[eventKey]*recordedEvent
	lengths     map[senderStream][]*recordedEvent
	bundles     map[bundleKey]*Bundle
	outstanding map[string]int    // number of !!
	order       *bundleOrder      // order of the bundles received so far, if InOrder
	found       Verdict           // violations found so far
	deleted     map[Digest]Moment // moment at which the deletion of each content ended; 0 until it has ended
}

// An Event is an event that is about to be sent.
type Event struct {
	Recipient, ID string
	Cabinet       string // name of the event's cabinet
	Sender        int    // number of the sender; events of one sender keep their order within a cabinet
	AnyOrder      bool   // events of this sender may arrive in any order
	Unsure        bool   // true if the event may be missing until Accept is called
	Content       Digest // hash of its content; a zero Digest is not compared
}

// A Digest is a hash of content.
type Digest [sha256.Size]byte

// DigestOf returns the hash of content.
func DigestOf(content []byte) Digest { return sha256.Sum256(content) }

// A Moment is a point in time: the number of a request or response, in the order in which the
// ledger learned of them.
type Moment int64

// An Element is an event in the body of a bundle.
type Element struct {
	ID       string
	Sequence int64  // 0 if the body does not contain the number
	Content  Digest // hash of its content; a zero Digest is not compared
}

// A Bundle is a bundle that was received.
type Bundle struct {
	Actor, ID string
	Elements  []Element
	Cabinet   string

	body        Digest
	events      []*recordedEvent
	start       Moment // moment at which the first request that returned the bundle began
	confirmed   Moment // moment of the response to the bundle's first Dequeue; 0 before that
	confirmedOK int    // number of its Dequeues that returned 200
	isWithdrawn bool   // its events may be delivered again in other bundles
}

// Position returns the position of the bundle's first event among those that its sender
// has sent to its cabinet.
func (b *Bundle) Position() int { return b.events[0].position }

type eventKey struct{ recipient, id string }

type bundleKey struct{ actor, id string }

// A senderStream is the sequence of events of one sender for one cabinet.
type senderStream struct {
	sender             int
	recipient, cabinet string
}

type recordedEvent struct {
	Event
	position int     // position of the event in the sender's stream
	bundle   *Bundle // latest bundle with the event; nil before the first one
	isGone   bool    // true after a bundle with the event was confirmed
	times    int     // number of confirmed bundles with the event; set by Check

	isExpired  bool // the next bundle may contain the event although an earlier bundle did
	wasExpired bool // Expire was called, so bundles may contain the event at any position
}

func (e *recordedEvent) streamOf() senderStream {
	return senderStream{e.Sender, e.Recipient, e.Cabinet}
}

// New returns an empty Ledger.
func New(o Options) *Ledger {
	l := &Ledger{
		options: o, events: make(map[eventKey]*recordedEvent), lengths: make(map[senderStream][]*recordedEvent),
		bundles: make(map[bundleKey]*Bundle), outstanding: make(map[string]int),
	}
	l.order = newOrder(l.lengths)
	return l
}

// Send records an event before it is sent. The events of one sender must be recorded
// in the order in which they are sent.
func (l *Ledger) Send(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := &recordedEvent{Event: e}
	s := sent.streamOf()
	sent.position = len(l.lengths[s])
	l.lengths[s] = append(l.lengths[s], sent)
	l.events[eventKey{e.Recipient, e.ID}] = sent
	if !e.Unsure {
		l.outstanding[e.Recipient]++
	}
}

// Accept records that an unsure event is stored, so that it must be delivered.
func (l *Ledger) Accept(recipient, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.events[eventKey{recipient, id}]
	if e.Unsure && !e.isGone {
		l.outstanding[recipient]++
	}
	e.Unsure = false
}

// Now returns the moment at which a request begins.
func (l *Ledger) Now() Moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Receive records a bundle that actor received by a request that began at the moment start. If the
// bundle is new, it calls read, which returns the events in the body. The error is a *Violation, or
// joins several.
func (l *Ledger) Receive(actor, id string, body []byte, start Moment, read func() ([]Element, error)) (isNew bool, err error) {
	sum := DigestOf(body)
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.deleted[sum]; at > 0 && start >= at {
		return false, l.reportViolation(RuleDeleted, "bundle %s of %s: it comes with content that was deleted before it was requested", id, actor)
	}
	if known := l.bundles[bundleKey{actor, id}]; known != nil {
		return false, l.receiveAgain(known, sum, start, read)
	}
	b := &Bundle{Actor: actor, ID: id, body: sum, start: start}
	l.bundles[bundleKey{actor, id}] = b
	if b.Elements, err = read(); err != nil {
		return true, l.reportViolation(RuleDelivered, "bundle %s of %s: %v", id, actor, err)
	}
	if err := l.resolveEvents(b); err != nil {
		return true, err
	}
	if !l.options.InOrder {
		return true, nil
	}
	return true, l.checkBundle(b)
}

// receiveAgain compares a bundle that is received again with its first delivery.
func (l *Ledger) receiveAgain(b *Bundle, body Digest, start Moment, read func() ([]Element, error)) error {
	if b.body != body {
		if err := l.replaceBody(b, body, read); err != nil {
			return err
		}
	}
	switch {
	case b.confirmed > 0 && start >= b.confirmed:
		return l.reportViolation(RuleGone, "bundle %s of %s: it comes again after its Dequeue", b.ID, b.Actor)
	}
	b.start = min(b.start, start)
	return nil
}

// resolveEvents finds the sent events that a bundle contains.
func (l *Ledger) resolveEvents(b *Bundle) error {
	if len(b.Elements) == 0 {
		return l.reportViolation(RuleDelivered, "bundle %s of %s: it has no events", b.ID, b.Actor)
	}
	for _, element := range b.Elements {
		e, ok := l.events[eventKey{b.Actor, element.ID}]
		switch {
		case !ok:
			return l.reportViolation(RuleDelivered, "bundle %s of %s: event %q was never sent to this actor", b.ID, b.Actor, element.ID)
		case element.Content != Digest{} && e.Content != Digest{} && element.Content != e.Content:
			return l.reportViolation(RuleDelivered, "bundle %s of %s: event %s: its content is not the one that was sent", b.ID, b.Actor, e.ID)
		case b.Cabinet != "" && b.Cabinet != e.Cabinet:
			return l.reportViolation(RuleDelivered, "bundle %s of %s: it has events of the cabinets %s and %s", b.ID, b.Actor, b.Cabinet, e.Cabinet)
		}
		b.Cabinet = e.Cabinet
		b.events = append(b.events, e)
	}
	if !l.options.InOrder {
		for _, e := range b.events {
			e.bundle = b
		}
	}
	return nil
}

// checkBundle compares a new bundle with the bundles that were received earlier.
func (l *Ledger) checkBundle(b *Bundle) error {
	var errs []error
	l.order.rewindBefore(b)
	for _, e := range b.events {
		if e.bundle == b || e.bundle != nil && !e.bundle.isWithdrawn && !e.isExpired {
			l.found.Duplicated = append(l.found.Duplicated, e.Recipient+" "+e.ID)
			errs = append(errs, &Violation{RuleOnce, fmt.Sprintf("event %s is in bundle %s and in bundle %s", e.ID, e.bundle.ID, b.ID)})
		}
		e.bundle = b
	}
	for _, text := range l.order.addBundle(b) {
		l.found.Disorder = append(l.found.Disorder, text)
		errs = append(errs, &Violation{RuleOrder, fmt.Sprintf("bundle %s: %s", b.ID, text)})
	}
	for _, e := range b.events {
		e.isExpired = false
	}
	return errors.Join(errs...)
}

// Withdraw records whether the events of a bundle may be delivered again in
// other bundles.
func (l *Ledger) Withdraw(actor, id string, isWithdrawn bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bundles[bundleKey{actor, id}].isWithdrawn = isWithdrawn
}

// Expire records that one more bundle may contain an event, at any position: the hub no longer
// stores the id of the event, so a late repetition of the event is new to the hub. Only a ledger
// with Options.InOrder uses this.
func (l *Ledger) Expire(recipient, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.events[eventKey{recipient, id}]
	e.isExpired, e.wasExpired = true, true
}

// Reopen records that a bundle may be received again, although its Dequeue was
// answered.
func (l *Ledger) Reopen(actor, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bundles[bundleKey{actor, id}].confirmed = 0
}

// Confirm records that the Dequeue of a bundle was answered. isOK is true for a 200; otherwise the
// status was 404, because an earlier response was lost or a different client of the actor was
// faster. Confirm returns the ids of the events that no bundle has delivered before.
func (l *Ledger) Confirm(actor, id string, isOK bool) (delivered []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	b := l.bundles[bundleKey{actor, id}]
	if isOK {
		b.confirmedOK++
	}
	b.confirmed = cmp.Or(b.confirmed, l.now)
	for _, e := range b.events {
		if e.isGone || e.bundle != b && b.isWithdrawn {
			continue
		}
		e.isGone = true
		delivered = append(delivered, e.ID)
		if !e.Unsure {
			l.outstanding[actor]--
		}
	}
	return delivered
}

// Replaced returns an event of a bundle that was later delivered in a second bundle, and the id of
// the second bundle. Without such an event it returns two empty strings.
func (l *Ledger) Replaced(actor, id string) (event, bundle string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[bundleKey{actor, id}]
	for _, e := range b.events {
		if e.bundle != b {
			return e.ID, e.bundle.ID
		}
	}
	return "", ""
}

// Outstanding returns the number of accepted events that are not confirmed, of some
// recipients or of all.
func (l *Ledger) Outstanding(recipients ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(recipients) == 0 {
		for _, left := range l.outstanding {
			n += left
		}
	}
	for _, recipient := range recipients {
		n += l.outstanding[recipient]
	}
	return n
}

// IsReceived reports whether an event was received in a bundle.
func (l *Ledger) IsReceived(recipient, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[eventKey{recipient, id}].bundle != nil
}

// Bundle returns a bundle that was received, or nil.
func (l *Ledger) Bundle(actor, id string) *Bundle {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bundles[bundleKey{actor, id}]
}

// Confirmed returns the bundles whose Dequeue was answered.
func (l *Ledger) Confirmed() (found []*Bundle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.bundles {
		if b.confirmed > 0 {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b *Bundle) int { return cmp.Compare(a.confirmed, b.confirmed) })
	return found
}

// Size returns the number of sent events and of received bundles.
func (l *Ledger) Size() (events, bundles int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events), len(l.bundles)
}

// Report records a violation that the caller has found, and returns it.
func (l *Ledger) Report(format string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reportViolation("", format, args...)
}

// reportViolation records a violation. The caller holds mu.
func (l *Ledger) reportViolation(rule Rule, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	l.found.Faults = append(l.found.Faults, text)
	return &Violation{rule, text}
}
