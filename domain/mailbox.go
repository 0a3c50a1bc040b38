package domain

import "time"

// A Mailbox is the state of a recipient's mailbox, as a survey has read it. It may be outdated, and
// no rule depends on it.
type Mailbox struct {
	Recipient ActorID
	Groups    []MailboxGroup // groups with a value to report, ordered by name
	Frozen    bool           // an operator has frozen the mailbox
	Damage    string         // why a document of the mailbox cannot be read; "": all documents can be read
}

// A MailboxGroup is a group of a Mailbox.
type MailboxGroup struct {
	Group   Group
	Waiting Backlog // waiting events, including the events of the open bundle

	Open         BundleID  // zero: no open bundle
	Opened       time.Time // time at which Open was opened
	Failures     int       // number of consecutive failures of the domain to produce the content of Open
	FailingSince time.Time // time of the first of the Failures, or an earlier time; zero: no failures

	LastPeek    time.Time // time of the last Peek that opened a bundle; zero: unknown
	LastDequeue time.Time // zero: unknown
}

// A MailboxState summarizes a mailbox for an operator.
type MailboxState string

// The states, from the least to the most important. If several apply, a mailbox has the last of
// them.
const (
	MailboxEmpty   MailboxState = "empty"   // no events wait
	MailboxWaiting MailboxState = "waiting" // events wait, and no bundle is open
	MailboxOpen    MailboxState = "open"    // a bundle is open
	MailboxFailing MailboxState = "failing" // a domain fails to produce the content of an open bundle
	MailboxFrozen  MailboxState = "frozen"  // an operator has frozen the mailbox
	MailboxDamaged MailboxState = "damaged" // a document of the mailbox is damaged, or has a newer format
)

// MailboxStates are all states, in the order in which they are shown.
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

// Summary returns the values by which a list of mailboxes is filtered and ordered.
func (m *Mailbox) Summary() MailboxSummary {
	return MailboxSummary{Recipient: m.Recipient, State: m.State(), Waiting: m.Waiting()}
}

// A MailboxSummary has the values by which a list of mailboxes is filtered and ordered.
type MailboxSummary struct {
	Recipient ActorID
	State     MailboxState
	Waiting   Backlog
}

// MailboxTotals are sums over mailboxes.
type MailboxTotals struct {
	States map[MailboxState]int
	Groups map[Group]GroupTotals
}

// GroupTotals are sums over the mailboxes of a group.
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

// addKnown is like Plus, but if only one of the two ages is known, the sum has that age.
func (b Backlog) addKnown(c Backlog) Backlog {
	sum := Backlog{Events: b.Events + c.Events, Oldest: b.Oldest}
	if sum.Oldest.IsZero() || !c.Oldest.IsZero() && c.Oldest.Before(sum.Oldest) {
		sum.Oldest = c.Oldest
	}
	return sum
}
