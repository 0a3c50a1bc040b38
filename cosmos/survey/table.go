package survey

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A table has the lines that this node knows, of its own survey or of another node's. It is safe
// for concurrent use.
type table struct {
	reader Reader

	mu      sync.RWMutex
	at      time.Time
	entries map[string]*entry

	totals   domain.MailboxTotals // of version totalsOf
	totalsOf int64
	version  int64 // raised by each change
}

// An entry is the record of a mailbox, and what lists are filtered and ordered by.
type entry struct {
	recipient domain.ActorID
	record    []byte // is replaced, never changed
	events    int64
	oldest    int64 // in milliseconds since 1970; 0: not known
	state     uint8 // index in domain.MailboxStates, or noLine
}

const noLine = uint8(255)

func newTable(reader Reader) *table {
	return &table{reader: reader, entries: make(map[string]*entry), totalsOf: -1}
}

// record returns the record of a recipient, nil if it has none.
func (t *table) record(recipient domain.ActorID) []byte {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.entries[recipient.String()]; e != nil {
		return e.record
	}
	return nil
}

// set replaces the record of a recipient.
func (t *table) set(recipient domain.ActorID, record []byte) {
	t.setEntries([]entry{newEntry(t.reader, recipient, record)})
}

// newEntry returns the entry of a record.
func newEntry(reader Reader, recipient domain.ActorID, record []byte) entry {
	e := entry{recipient: recipient, record: record, state: noLine}
	m, ok := reader.Mailbox(recipient, record)
	if !ok {
		return e
	}
	e.state = indexOf(m.State())
	waiting := m.Waiting()
	e.events = waiting.Events
	if !waiting.Oldest.IsZero() {
		e.oldest = waiting.Oldest.UnixMilli()
	}
	return e
}

// setEntries replaces entries by those of the same recipients.
func (t *table) setEntries(entries []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		if old := t.entries[e.recipient.String()]; old != nil {
			*old = e
			continue
		}
		t.entries[e.recipient.String()] = &e
	}
	t.version++
}

func indexOf(state domain.MailboxState) uint8 {
	for i, s := range domain.MailboxStates {
		if s == state {
			return uint8(i)
		}
	}
	return noLine
}

// clear removes all lines.
func (t *table) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.entries = time.Time{}, make(map[string]*entry)
	t.version++
}

func (t *table) setAt(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = at
}

// At implements repository.Surveyed.
func (t *table) At() time.Time {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.at
}

// Summaries implements repository.Surveyed. No line is renewed meanwhile.
func (t *table) Summaries() iter.Seq[domain.MailboxSummary] {
	return func(yield func(domain.MailboxSummary) bool) {
		t.mu.RLock()
		defer t.mu.RUnlock()
		for _, e := range t.entries {
			if e.state == noLine {
				continue
			}
			s := domain.MailboxSummary{Recipient: e.recipient, State: domain.MailboxStates[e.state], Waiting: domain.Backlog{Events: e.events}}
			if e.oldest != 0 {
				s.Waiting.Oldest = time.UnixMilli(e.oldest).UTC()
			}
			if !yield(s) {
				return
			}
		}
	}
}

// Mailbox implements repository.Surveyed.
func (t *table) Mailbox(recipient domain.ActorID) (domain.Mailbox, bool) {
	record := t.record(recipient)
	if record == nil {
		return domain.Mailbox{}, false
	}
	return t.reader.Mailbox(recipient, record)
}

// records returns all records, in the order of their recipients.
func (t *table) records() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		t.mu.RLock()
		defer t.mu.RUnlock()
		for _, recipient := range slices.Sorted(maps.Keys(t.entries)) {
			if !yield(recipient, t.entries[recipient].record) {
				return
			}
		}
	}
}

// sums returns the totals of all lines.
func (t *table) sums() domain.MailboxTotals {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.totalsOf == t.version {
		return t.totals
	}
	var sums domain.MailboxTotals
	for _, e := range t.entries {
		if m, ok := t.reader.Mailbox(e.recipient, e.record); ok {
			sums.Add(&m)
		}
	}
	t.totals, t.totalsOf = sums, t.version
	return sums
}

// recipients returns the recipients of all records, in order.
func (t *table) recipients() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Sorted(maps.Keys(t.entries))
}

// inState returns the recipients whose line is in a state, in order.
func (t *table) inState(state domain.MailboxState) []domain.ActorID {
	want := indexOf(state)
	var found []domain.ActorID
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, e := range t.entries {
		if e.state == want {
			found = append(found, e.recipient)
		}
	}
	slices.SortFunc(found, compareActors)
	return found
}

func compareActors(a, b domain.ActorID) int { return strings.Compare(a.String(), b.String()) }
