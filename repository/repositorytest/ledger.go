package repositorytest

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/messagehub/messagehub/bench/ledger"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Ledger remembers what was saved and compares it with what was delivered. The judgement
// is that of package ledger, which knows no store; this one adds what only a store shows:
// whether an event and a bundle have all their members. It is safe for concurrent use; the
// zero Ledger is empty.
type Ledger struct {
	mu      sync.Mutex
	entries []ledgerEntry // in the order in which they were noted
	indexes map[entryKey]int
}

type entryKey struct {
	recipient domain.ActorID
	event     domain.EventID
}

type ledgerEntry struct {
	domain.Event
	saver  int  // who saved it
	unsure bool // whether it was saved
}

// Saved notes that saver, a number that the caller chooses, got the answer that events
// are stored. The events of one saver must come back in the order in which they
// were noted, those of different savers in any.
func (l *Ledger) Saved(saver int, events ...domain.Event) { l.noteSave(saver, false, events) }

// Unsure notes events that may have been stored: the Save failed. They may be
// delivered or not. Once a repeated Save succeeds, note them as Saved.
func (l *Ledger) Unsure(saver int, events ...domain.Event) { l.noteSave(saver, true, events) }

func (l *Ledger) noteSave(saver int, unsure bool, events []domain.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.indexes == nil {
		l.indexes = make(map[entryKey]int)
	}
	for _, e := range events {
		key := entryKey{e.Recipient, e.ID}
		if i, ok := l.indexes[key]; ok {
			known := &l.entries[i]
			known.unsure = known.unsure && unsure
			continue // a duplicate keeps its place
		}
		l.indexes[key] = len(l.entries)
		l.entries = append(l.entries, ledgerEntry{e, saver, unsure})
	}
}

// Check compares the ledger with all bundles that were dequeued, of one
// recipient or several. Those of one cabinet must be listed in the order in
// which they were dequeued.
//
// The error names the first findings: events lost, in two bundles, changed or
// out of order, sequence numbers that do not ascend, bundles that are not what
// they say.
func (l *Ledger) Check(dequeued []Peeked) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	judge := ledger.New(ledger.Options{InOrder: true})
	for i := range l.entries {
		e := &l.entries[i]
		judge.Send(ledger.Event{
			Recipient: e.Recipient.String(), ID: e.ID.String(), Cabinet: cabinetName(&e.Event),
			Sender: e.saver, Unsure: e.unsure, Content: contentOf(&e.Event, e.Payload != nil),
		})
	}
	var found findings
	for n, b := range dequeued {
		found.add(checkBundle(b))
		if len(b.Events) == 0 {
			continue
		}
		// The number keeps apart two bundles with one id: what was dequeued is never repeated.
		actor, id := b.Events[0].Recipient.String(), fmt.Sprintf("%s (number %d)", b.ID, n)
		_, err := judge.Receive(actor, id, nil, judge.Now(), func() ([]ledger.Element, error) { return elementsOf(b), nil })
		found.add(err)
		judge.Confirm(actor, id, true)
	}
	for _, lost := range judge.Check().Lost {
		found.addf("the event of %s was lost", lost)
	}
	return found.err()
}

func elementsOf(b Peeked) []ledger.Element {
	elements := make([]ledger.Element, len(b.Events))
	for i := range b.Events {
		e := &b.Events[i]
		elements[i] = ledger.Element{ID: e.ID.String(), Sequence: int64(e.Sequence), Content: contentOf(&e.Event, !e.PayloadAt.IsZero())}
	}
	return elements
}

func cabinetName(e *domain.Event) string { return e.Origin.String() + "|" + e.ContentType.String() }

// contentOf returns a hash of all members of an event except its id and the bytes of its
// payload.
func contentOf(e *domain.Event, hasPayload bool) ledger.Digest {
	bare := *e
	bare.Payload = nil
	digest := bare.Digest()
	return ledger.DigestOf(fmt.Appendf(digest[:], "%v", hasPayload))
}

// inOrder sorts bundles by the sequence numbers of their events. It is for those
// that several actors dequeued side by side, where the order is unknown.
func inOrder(bundles []Peeked) []Peeked {
	return slices.SortedFunc(slices.Values(bundles), func(a, b Peeked) int { return cmp.Compare(a.First, b.First) })
}

// checkBundle checks that the properties of b follow from its events.
func checkBundle(b Peeked) error {
	var filler domain.Filler
	for i := range b.Events {
		e := &b.Events[i]
		if !filler.Take(&e.Event, e.Sequence) {
			return fmt.Errorf("bundle %s: its event number %d breaks the bundling rules", b.ID, i)
		}
		if e.Cabinet() != b.Cabinet {
			return fmt.Errorf("bundle %s is of cabinet %v, but its event number %d is of %v", b.ID, b.Cabinet, i, e.Cabinet())
		}
	}
	want := b.Bundle
	filler.Fill(&want)
	if !reflect.DeepEqual(want, b.Bundle) {
		return fmt.Errorf("bundle %s: its events amount to %+v, but it says %+v", b.ID, want, b.Bundle)
	}
	return nil
}

// SameEvent reports whether e is what a store should give back for saved. It
// does not compare the payload itself, only whether there is one.
func SameEvent(e *repository.StoredEvent, saved *domain.Event) bool {
	return e.ID == saved.ID && contentOf(&e.Event, !e.PayloadAt.IsZero()) == contentOf(saved, saved.Payload != nil)
}

// findings are errors of which only the first few are worth reading.
type findings struct {
	first []error
	more  int
}

func (f *findings) addf(format string, args ...any) { f.add(fmt.Errorf(format, args...)) }

func (f *findings) add(err error) {
	const maxFindings = 10
	switch {
	case err == nil:
	case len(f.first) < maxFindings:
		f.first = append(f.first, err)
	default:
		f.more++
	}
}

func (f *findings) err() error {
	if f.more > 0 {
		return errors.Join(slices.Concat(f.first, []error{fmt.Errorf("and %d findings more", f.more)})...)
	}
	return errors.Join(f.first...)
}
