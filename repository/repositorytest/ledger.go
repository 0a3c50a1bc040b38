package repositorytest

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Ledger remembers what was saved and compares it with what was delivered.
// It is safe for concurrent use; the zero Ledger is empty.
type Ledger struct {
	mu      sync.Mutex
	entries map[entryKey]*entry
	written int
}

type entryKey struct {
	recipient domain.ActorID
	event     domain.EventID
}

type entry struct {
	domain.Event
	saver  int  // who saved it
	place  int  // in the order of the ledger
	unsure bool // whether it was saved
}

// Saved notes that saver, a number that the caller chooses, was told that events
// are stored. The events of one saver must come back in the order in which they
// were noted, those of different savers in any.
func (l *Ledger) Saved(saver int, events ...domain.Event) { l.note(saver, false, events) }

// Unsure notes events that may have been stored: the Save failed. They may be
// delivered or not. Once a repeated Save succeeds, note them as Saved.
func (l *Ledger) Unsure(saver int, events ...domain.Event) { l.note(saver, true, events) }

func (l *Ledger) note(saver int, unsure bool, events []domain.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = make(map[entryKey]*entry)
	}
	for _, e := range events {
		key := entryKey{e.Recipient, e.ID}
		if known, ok := l.entries[key]; ok {
			known.unsure = known.unsure && unsure
			continue // a duplicate keeps its place
		}
		l.written++
		l.entries[key] = &entry{e, saver, l.written, unsure}
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
	var found findings
	type stream struct {
		cabinet domain.CabinetKey
		saver   int
	}
	delivered := make(map[entryKey]bool, len(l.entries))
	type place struct {
		recipient domain.ActorID
		sequence  domain.Sequence
	}
	taken := make(map[place]domain.EventID, len(l.entries))
	lastSequence := make(map[domain.CabinetKey]domain.Sequence)
	lastPlace := make(map[stream]int)
	for _, b := range dequeued {
		found.add(checkBundle(b))
		for i := range b.Events {
			e := &b.Events[i]
			key := entryKey{e.Recipient, e.ID}
			saved, ok := l.entries[key]
			switch {
			case !ok:
				found.addf("event %s was delivered to %s, but never saved for it", e.ID, e.Recipient)
				continue
			case delivered[key]:
				found.addf("event %s was delivered to %s twice", e.ID, e.Recipient)
				continue
			case !SameEvent(e, &saved.Event):
				found.addf("event %s was saved as %+v and delivered as %+v", e.ID, saved.Event, e.Event)
			}
			delivered[key] = true
			if last := lastSequence[e.Cabinet()]; e.Sequence <= last {
				found.addf("event %s has sequence number %d, after %d of the same cabinet", e.ID, e.Sequence, last)
			}
			lastSequence[e.Cabinet()] = e.Sequence
			if other, ok := taken[place{e.Recipient, e.Sequence}]; ok {
				found.addf("events %s and %s have the same sequence number %d", other, e.ID, e.Sequence)
			}
			taken[place{e.Recipient, e.Sequence}] = e.ID
			s := stream{e.Cabinet(), saved.saver}
			if saved.place < lastPlace[s] {
				found.addf("event %s was delivered after one that its saver %d saved later", e.ID, saved.saver)
			}
			lastPlace[s] = saved.place
		}
	}
	for key, e := range l.entries {
		if !e.unsure && !delivered[key] {
			found.addf("event %s for %s, number %d of the ledger, was lost", e.ID, e.Recipient, e.place)
		}
	}
	return found.err()
}

// inOrder sorts bundles by the sequence numbers of their events. It is for those
// that several actors dequeued side by side, where nobody saw the order.
func inOrder(bundles []Peeked) []Peeked {
	return slices.SortedFunc(slices.Values(bundles), func(a, b Peeked) int { return cmp.Compare(a.First, b.First) })
}

// checkBundle checks that b is what its events amount to.
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
// does not look at the payload itself, only at whether there is one.
func SameEvent(e *repository.StoredEvent, saved *domain.Event) bool {
	want := *saved
	want.Payload = nil
	return e.ID == want.ID && e.Digest() == want.Digest() && e.PayloadAt.IsZero() == (saved.Payload == nil)
}

// findings are errors of which only the first few are worth reading.
type findings struct {
	first []error
	more  int
}

func (f *findings) addf(format string, args ...any) { f.add(fmt.Errorf(format, args...)) }

func (f *findings) add(err error) {
	const most = 10
	switch {
	case err == nil:
	case len(f.first) < most:
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
