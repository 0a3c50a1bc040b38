package domain

import "time"

// A Mailbox is the state of a recipient's mailbox, as found by a survey. It may be outdated, and
// correctness does not depend on it.
type Mailbox struct {
	Recipient ActorID
	Groups    []MailboxGroup // groups with anything to report, sorted by name
	Frozen    bool           // an operator has frozen the mailbox
	Damage    string         // reason why a document of the mailbox cannot be read; "": all documents can be read
}

// A MailboxGroup is the part of a mailbox that belongs to one group.
type MailboxGroup struct {
	Group   Group
	Waiting Backlog // waiting events, including those of the open bundle

	Open         BundleID  // id of the open bundle; zero: no bundle is open
	Opened       time.Time // time at which the open bundle was opened
	Failures     int       // number of consecutive failures of the domain to produce the open bundle's content
	FailingSince time.Time // time of the first of these failures, or an earlier time; zero: no failures

	LastPeek    time.Time // time of the last Peek that opened a bundle; zero: unknown
	LastDequeue time.Time // zero: unknown
}

// A MailboxState summarizes a mailbox for an operator.
type MailboxState string

// The states, from the least to the most important. If several apply, the most important one is the
// state of the mailbox.
const (
	MailboxEmpty   MailboxState = "empty"   // no events wait
	MailboxWaiting MailboxState = "waiting" // events wait, and no bundle is open
	MailboxOpen    MailboxState = "open"    // a bundle is open
	MailboxFailing MailboxState = "failing" // a domain fails to produce the content of the open bundle
	MailboxFrozen  MailboxState = "frozen"  // an operator has frozen the mailbox
	MailboxDamaged MailboxState = "damaged" // a document of the mailbox is damaged, or has a newer format
)

// MailboxStates lists all states, in the order in which pages display them.
var MailboxStates = []MailboxState{
	MailboxEmpty, MailboxWaiting, MailboxOpen, MailboxFailing, MailboxFrozen, MailboxDamaged,
}

// State returns the most important state that applies to m.
func (m *Mailbox) State() MailboxState {
	switch {
	case m.Damage != "":
		return MailboxDamaged
	case m.Frozen:
		return MailboxFrozen
	}
	state := MailboxEmpty
	for i := range m.Groups {
		switch g := &m.Groups[i]; {
		case g.Failures > 0:
			return MailboxFailing
		case g.Open != BundleID{}:
			state = MailboxOpen
		case g.Waiting.Events > 0 && state == MailboxEmpty:
			state = MailboxWaiting
		}
	}
	return state
}

// Waiting returns the sum of the backlogs of all groups.
func (m *Mailbox) Waiting() Backlog {
	var sum Backlog
	for i := range m.Groups {
		sum = sum.Plus(m.Groups[i].Waiting)
	}
	return sum
}

// LastPeek returns the time of the last Peek of any group that opened a bundle; zero: unknown.
func (m *Mailbox) LastPeek() time.Time {
	var last time.Time
	for i := range m.Groups {
		if t := m.Groups[i].LastPeek; t.After(last) {
			last = t
		}
	}
	return last
}

// LastDequeue returns the time at which the last bundle of any group was dequeued; zero: unknown.
func (m *Mailbox) LastDequeue() time.Time {
	var last time.Time
	for i := range m.Groups {
		if t := m.Groups[i].LastDequeue; t.After(last) {
			last = t
		}
	}
	return last
}

// Summary returns the values for filtering and sorting a list of mailboxes.
func (m *Mailbox) Summary() MailboxSummary {
	return MailboxSummary{Recipient: m.Recipient, State: m.State(), Waiting: m.Waiting()}
}

// A MailboxSummary contains the values for filtering and sorting a list of mailboxes.
type MailboxSummary struct {
	Recipient ActorID
	State     MailboxState
	Waiting   Backlog
}

// MailboxTotals contains sums over many mailboxes.
type MailboxTotals struct {
	States map[MailboxState]int
	Groups map[Group]GroupTotals
}

// GroupTotals contains sums over one group's parts of many mailboxes.
type GroupTotals struct {
	Waiting    Backlog
	OldestOpen time.Time // time at which the oldest open bundle was opened; zero: no open bundle
}

// Add adds the values of a mailbox to the totals.
func (t *MailboxTotals) Add(m *Mailbox) {
	if t.States == nil {
		t.States, t.Groups = make(map[MailboxState]int), make(map[Group]GroupTotals)
	}
	t.States[m.State()]++
	for i := range m.Groups {
		g := &m.Groups[i]
		sum := t.Groups[g.Group]
		sum.Waiting = sum.Waiting.addKnown(g.Waiting)
		if !g.Opened.IsZero() && (sum.OldestOpen.IsZero() || g.Opened.Before(sum.OldestOpen)) {
			sum.OldestOpen = g.Opened
		}
		t.Groups[g.Group] = sum
	}
}

// addKnown returns the sum of two backlogs. Unlike Plus, it ignores a time that is unknown.
func (b Backlog) addKnown(c Backlog) Backlog {
	sum := Backlog{Events: b.Events + c.Events, Oldest: b.Oldest}
	if sum.Oldest.IsZero() || !c.Oldest.IsZero() && c.Oldest.Before(sum.Oldest) {
		sum.Oldest = c.Oldest
	}
	return sum
}
