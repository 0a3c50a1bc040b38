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

// A Ledger records what was saved and compares it with what was delivered. Package ledger, which is
// independent of stores, makes this comparison. This type adds checks that only a store needs: that
// events and bundles have all their members. It is safe for concurrent use; the zero Ledger is empty.
type Ledger struct {
	mu      sync.Mutex
	entries []ledgerEntry // in the order in which they were recorded
	indexes map[entryKey]int
}

type entryKey struct {
	recipient domain.ActorID
	event     domain.EventID
}

type ledgerEntry struct {
	domain.Event
	saver  int  // number of the saver; see Saved
	unsure bool // it is unknown whether the event was saved
}

// Saved records events that a Save has reported as stored. saver is a number that the caller chooses.
// The events of one saver must be delivered in the order in which they were recorded. Events of
// different savers may be delivered in any order.
func (l *Ledger) Saved(saver int, events ...domain.Event) { l.noteSave(saver, false, events) }

// Unsure records events of a failed Save, which may have been stored. They may be delivered or not.
// Once a repeated Save succeeds, record them as Saved.
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
			continue // a duplicate does not change the position of the event
		}
		l.indexes[key] = len(l.entries)
		l.entries = append(l.entries, ledgerEntry{e, saver, unsure})
	}
}

// Check compares the ledger with all bundles that one or several recipients have dequeued. The bundles
// of a cabinet must be in the order in which they were dequeued.
//
// The error contains the first findings: events that are lost, in two bundles, changed or out of order,
// sequence numbers that do not ascend, and bundles with wrong members.
func (l *Ledger) Check(dequeued []PeekedBundle) error {
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
		// The number distinguishes bundles with the same id, because each dequeued bundle counts as a new
		// one.
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

func elementsOf(b PeekedBundle) []ledger.Element {
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

// inOrder sorts bundles by the sequence numbers of their events. It is for bundles that several actors
// dequeued concurrently, whose order is unknown.
func inOrder(bundles []PeekedBundle) []PeekedBundle {
	return slices.SortedFunc(slices.Values(bundles), func(a, b PeekedBundle) int { return cmp.Compare(a.First, b.First) })
}

// checkBundle checks that the members of b match its events.
func checkBundle(b PeekedBundle) error {
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

// SameEvent reports whether e is what a store should return for saved. It does not compare the payload
// itself, only whether there is one.
func SameEvent(e *repository.StoredEvent, saved *domain.Event) bool {
	return e.ID == saved.ID && contentOf(&e.Event, !e.PayloadAt.IsZero()) == contentOf(saved, saved.Payload != nil)
}

// findings collects errors. It retains only the first few.
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
