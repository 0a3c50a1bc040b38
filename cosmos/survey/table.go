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

// A mailboxTable contains the lines that this node knows: either the lines of its own survey, or lines
// that another node has stored. It is safe for concurrent use.
type mailboxTable struct {
	reader Reader

	mu      sync.RWMutex
	at      time.Time
	entries map[string]*tableEntry

	totals   domain.MailboxTotals // cache of the totals, valid if version is totalsOf
	totalsOf int64
	version  int64 // number of changes of the table
}

// A tableEntry is the record of a mailbox, with the values by which lists are filtered and sorted.
type tableEntry struct {
	recipient domain.ActorID
	record    []byte // a record is replaced as a whole, never changed in place
	events    int64
	oldest    int64 // time of the oldest waiting event in milliseconds since 1970; 0: unknown
	state     uint8 // index in domain.MailboxStates, or noLine
}

const noLine = uint8(255)

func newTable(reader Reader) *mailboxTable {
	return &mailboxTable{reader: reader, entries: make(map[string]*tableEntry), totalsOf: -1}
}

// mailboxRecord returns the record of a recipient, or nil if the table does not contain it.
func (t *mailboxTable) mailboxRecord(recipient domain.ActorID) []byte {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.entries[recipient.String()]; e != nil {
		return e.record
	}
	return nil
}

// setRecord replaces the record of a recipient.
func (t *mailboxTable) setRecord(recipient domain.ActorID, record []byte) {
	t.setEntries([]tableEntry{newEntry(t.reader, recipient, record)})
}

// newEntry returns the entry of a record.
func newEntry(reader Reader, recipient domain.ActorID, record []byte) tableEntry {
	e := tableEntry{recipient: recipient, record: record, state: noLine}
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

// setEntries adds entries, or replaces the entries of the same recipients.
func (t *mailboxTable) setEntries(entries []tableEntry) {
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

// removeAll removes all lines.
func (t *mailboxTable) removeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.entries = time.Time{}, make(map[string]*tableEntry)
	t.version++
}

func (t *mailboxTable) setAt(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = at
}

// At implements repository.Surveyed.
func (t *mailboxTable) At() time.Time {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.at
}

// Summaries implements repository.Surveyed. The iterator locks the table, so no line changes during the
// iteration.
func (t *mailboxTable) Summaries() iter.Seq[domain.MailboxSummary] {
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
func (t *mailboxTable) Mailbox(recipient domain.ActorID) (domain.Mailbox, bool) {
	record := t.mailboxRecord(recipient)
	if record == nil {
		return domain.Mailbox{}, false
	}
	return t.reader.Mailbox(recipient, record)
}

// allRecords returns all records, in the order of their recipients.
func (t *mailboxTable) allRecords() iter.Seq2[string, []byte] {
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

// totalSums returns the totals of all lines.
func (t *mailboxTable) totalSums() domain.MailboxTotals {
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

// allRecipients returns the recipients of all records, in order.
func (t *mailboxTable) allRecipients() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Sorted(maps.Keys(t.entries))
}

// inState returns the recipients whose line is in a state, in order.
func (t *mailboxTable) inState(state domain.MailboxState) []domain.ActorID {
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
