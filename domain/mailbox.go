package domain

import "time"

// A Mailbox is the state of a recipient's mailbox that a survey has read. It may be outdated:
// no rule depends on it.
type Mailbox struct {
	Recipient ActorID
	Groups    []MailboxGroup // those with something to report, in the order of their names
	Frozen    bool           // by an operator
	Damage    string         // why a document of it cannot be read; "" if all can
}

// A MailboxGroup is a group of a Mailbox.
type MailboxGroup struct {
	Group   Group
	Waiting Backlog // the events of the open bundle included

	Open         BundleID  // zero: no open bundle
	Opened       time.Time // when Open was opened
	Failures     int       // of the domain consecutive failures to produce the content of Open
	FailingSince time.Time // a lower limit for the time of the first of the Failures; zero without failures

	LastPeek    time.Time // the last Peek that opened a bundle; zero: not known
	LastDequeue time.Time // zero: not known
}

// A MailboxState summarizes a mailbox for an operator.
type MailboxState string

// The states. Of those that apply, a mailbox has the last one in this order.
const (
	MailboxEmpty   MailboxState = "empty"   // nothing waits
	MailboxWaiting MailboxState = "waiting" // events wait, and no bundle is open
	MailboxOpen    MailboxState = "open"    // a bundle is open
	MailboxFailing MailboxState = "failing" // a domain fails to make the content of an open bundle
	MailboxFrozen  MailboxState = "frozen"  // an operator has frozen it
	MailboxDamaged MailboxState = "damaged" // a document of it is damaged, or has a newer format
)

// MailboxStates are all states, in the order in which they are shown.
var MailboxStates = []MailboxState{
	MailboxEmpty, MailboxWaiting, MailboxOpen, MailboxFailing, MailboxFrozen, MailboxDamaged,
}

// State returns the state of m.
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

// Waiting returns what waits in all groups together.
func (m *Mailbox) Waiting() Backlog {
	var sum Backlog
	for i := range m.Groups {
		sum = sum.Plus(m.Groups[i].Waiting)
	}
	return sum
}

// LastPeek returns when a Peek of any group has opened a bundle last; zero: not known.
func (m *Mailbox) LastPeek() time.Time {
	var last time.Time
	for i := range m.Groups {
		if t := m.Groups[i].LastPeek; t.After(last) {
			last = t
		}
	}
	return last
}

// LastDequeue returns when a bundle of any group was dequeued last; zero: not known.
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
	OldestOpen time.Time // when the oldest open bundle was opened; zero: no open bundle
}

// Add counts a mailbox.
func (t *MailboxTotals) Add(m *Mailbox) {
	if t.States == nil {
		t.States, t.Groups = make(map[MailboxState]int), make(map[Group]GroupTotals)
	}
	t.States[m.State()]++
	for i := range m.Groups {
		g := &m.Groups[i]
		sum := t.Groups[g.Group]
		sum.Waiting = sum.Waiting.plusKnown(g.Waiting)
		if !g.Opened.IsZero() && (sum.OldestOpen.IsZero() || g.Opened.Before(sum.OldestOpen)) {
			sum.OldestOpen = g.Opened
		}
		t.Groups[g.Group] = sum
	}
}

// plusKnown is Plus, but ignores an unknown age if the other age is known.
func (b Backlog) plusKnown(c Backlog) Backlog {
	sum := Backlog{Events: b.Events + c.Events, Oldest: b.Oldest}
	if sum.Oldest.IsZero() || !c.Oldest.IsZero() && c.Oldest.Before(sum.Oldest) {
		sum.Oldest = c.Oldest
	}
	return sum
}
