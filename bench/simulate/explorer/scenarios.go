package explorer

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// eventsOf returns events with the given numbers as ids. Events with odd and with even numbers are in different
// cabinets of one group: two content types of one origin.
func eventsOf(numbers ...int) []domain.Event {
	return eventsBut(repositorytest.WithContentType("other-v1"), numbers...)
}

// eventsOfGroups is like eventsOf, but its two cabinets have different origins, and so different groups.
func eventsOfGroups(numbers ...int) []domain.Event {
	return eventsBut(repositorytest.WithOrigin(domain.Charges), numbers...)
}

func eventsBut(even repositorytest.Change, numbers ...int) []domain.Event {
	var all []domain.Event
	for _, n := range numbers {
		e := repositorytest.Event(recipient)
		if n%2 == 0 {
			even(&e)
		}
		e.ID = domain.EventID{0: byte(n), 6: 0x80, 8: 0x80} //nolint:gosec // a small number
		all = append(all, e)
	}
	return all
}

func saver(name string, offered ...[]domain.Event) Party {
	p := Party{Name: name}
	for _, some := range offered {
		p.Offers = append(p.Offers, some...)
	}
	p.Run = func(m *Member) {
		for _, some := range offered {
			m.Save(some)
		}
	}
	return p
}

func peeker(name string) Party { return Party{Name: name, Run: func(m *Member) { m.Peek() }} }

func taker(name string, times int) Party {
	return Party{Name: name, Run: func(m *Member) { m.Take(times) }}
}

func sweeper(name string) Party { return Party{Name: name, Run: func(m *Member) { m.Sweep() }} }

func flushesAll(name string) Party {
	return Party{Name: name, Tail: -1, Run: func(m *Member) { m.FlushAll() }}
}

// withTailLimit returns a copy of the party with limit as the maximum number of events in a tail.
func (p Party) withTailLimit(limit int) Party {
	p.Tail = limit
	return p
}

// dequeuer returns a party that dequeues the bundle of the preparation.
func dequeuer(name string) Party {
	return Party{Name: name, Run: func(m *Member) { m.Dequeue(repositorytest.PeekedBundle{Bundle: domain.Bundle{ID: firstBundle}}) }}
}

// makePatient returns a copy of the party. The copy claims no intent before the other parties are done or dead.
func (p Party) makePatient() Party {
	p.Patient = true
	return p
}

func (p Party) startAfter(other int) Party { //nolint:unparam // scenarios name the party
	p.After = other
	return p
}

// firstBundle is the id of the bundle that the preparation opens.
var firstBundle = domain.BundleID{1: 1, 6: 0x80, 8: 0x80}

// prepareSaves returns a preparation that saves the offered events, and then performs further actions.
func prepareSaves(offered [][]domain.Event, then ...func(*Member)) func(*Member) {
	return func(m *Member) {
		for _, some := range offered {
			m.Save(some)
		}
		for _, act := range then {
			act(m)
		}
	}
}

func openBundle(m *Member) { m.Peek() }
func takeBundle(m *Member) { m.Take(1) }

type list = [][]domain.Event

// Scenarios returns all scenarios, the smallest first.
func Scenarios() []*Scenario {
	lease := 1500 * time.Millisecond
	return append([]*Scenario{
		{
			Name: "peek-peek", Quick: true, Text: "two actors' clients peek what two cabinets of one group hold",
			Prepare: prepareSaves(list{eventsOf(1, 2, 3)}),
			Parties: []Party{peeker("peek a"), peeker("peek b")},
		},
		{
			Name: "peek-peek-apart", Quick: true, Text: "the same with two groups",
			Prepare: prepareSaves(list{eventsOfGroups(1, 2, 3)}),
			Parties: []Party{peeker("peek a"), peeker("peek b")},
		},
		{
			Name: "peek-dequeue", Quick: true, Text: "a peek while the open bundle is dequeued",
			Prepare: prepareSaves(list{eventsOf(1, 2, 3)}, openBundle),
			Parties: []Party{peeker("peek"), dequeuer("dequeue")},
		},
		{
			Name: "dequeue-dequeue-lost", Quick: true, Text: "one bundle is dequeued twice, a reply is lost",
			Prepare: prepareSaves(list{eventsOf(1, 2, 3)}, openBundle), Lost: 1,
			Parties: []Party{dequeuer("dequeue a"), dequeuer("dequeue b")},
		},
		{
			Name: "dequeue-crash-peek", Quick: true, Text: "a client crashes during its Dequeue, another peeks and dequeues",
			Prepare: prepareSaves(list{eventsOfGroups(1, 2, 3)}, openBundle), Crashes: 1, Lost: 1,
			Parties: []Party{dequeuer("dequeue"), taker("take", 2)},
		},
		{
			Name: "save-save-one", Text: "two processes save for the same cabinet",
			Parties: []Party{saver("save a", eventsOf(1)), saver("save b", eventsOf(3))}, Claims: 1,
		},
		{
			Name: "save-crash-save-one", Text: "a process crashes during its Save, another saves the same and more",
			Crashes: 1, Claims: 1,
			Parties: []Party{saver("save a", eventsOf(1)).makePatient(), saver("save b", eventsOf(1, 3))},
		},
		{
			Name: "save-crash-save-two", Text: "a process crashes during a Save in two cabinets, another saves the same",
			Crashes: 1,
			Parties: []Party{saver("save a", eventsOf(1, 2)).makePatient(), saver("save b", eventsOf(1, 2)).makePatient()},
		},
		{
			Name: "save-save-two", Text: "a process saves events of two cabinets, another rolls that back",
			Parties: []Party{saver("save a", eventsOf(1, 2)).makePatient(), saver("save b", eventsOf(3))}, Claims: 1,
		},
		{
			Name: "save-crash-save-lost", Text: "a process crashes during its Save, another saves the same and more; a lost reply",
			Prepare: prepareSaves(list{eventsOf(1)}), Crashes: 1, Lost: 1,
			Parties: []Party{saver("save a", eventsOf(3)).makePatient(), saver("save b", eventsOf(3, 5)).makePatient()},
		},
		{
			Name: "save-save-apart", Text: "two processes save for two cabinets of two groups; no claim while both live",
			Parties: []Party{saver("save a", eventsOfGroups(1, 2)), saver("save b", eventsOfGroups(3, 4))},
		},
		{
			Name: "save-save", Text: "two processes save for the same two cabinets",
			Parties: []Party{saver("save a", eventsOf(1, 2)), saver("save b", eventsOf(3, 4))}, Claims: 1,
		},
		{
			Name: "save-dequeue", Quick: true, Text: "a save while the open bundle is dequeued",
			Prepare: prepareSaves(list{eventsOf(1, 2)}, openBundle),
			Parties: []Party{saver("save", eventsOf(3, 4)), dequeuer("dequeue")},
		},
		{
			Name: "save-crash-save-same", Text: "a process crashes during its Save, another saves the same and more",
			Prepare: prepareSaves(list{eventsOf(1, 2)}), Crashes: 1, Claims: 1,
			Parties: []Party{saver("save a", eventsOf(3, 4)).makePatient(), saver("save b", eventsOf(3, 5))},
		},
		{
			Name: "save-crash-save-full", Text: "the same where a drawer is full and another begins; no process rolls back a live Save",
			Prepare: prepareSaves(list{eventsOf(1, 3), eventsOf(2)}), Crashes: 1,
			Parties: []Party{saver("save a", eventsOf(5, 7, 4)).makePatient(), saver("save b", eventsOf(5, 9)).makePatient()},
		},
		{
			Name: "save-save-lease", Text: "two processes save, each leaving the other two seconds",
			Leases: true, Wait: lease, Claims: 2,
			Parties: []Party{saver("save a", eventsOf(1)), saver("save b", eventsOf(2))},
		},
		{
			Name: "two-savers-crash-lost-reply", Text: "as in the model: two savers, one of two Saves; a crash, a lost reply",
			Crashes: 1, Lost: 1,
			Parties: []Party{saver("save a", eventsOf(1), eventsOf(2, 5)).makePatient(), saver("save b", eventsOf(2)).makePatient()},
		},
		{
			Name: "two-savers-undo-crash-lost-reply", Text: "the same, and one of them may roll back a live Save",
			Crashes: 1, Lost: 1, Claims: 1,
			Parties: []Party{saver("save a", eventsOf(1), eventsOf(2, 5)).makePatient(), saver("save b", eventsOf(2))},
		},
		{
			Name: "save-two-dequeuers-crash", Quick: true, Text: "as in the model: a saver, two who take; a crash, a lost reply",
			Prepare: prepareSaves(list{eventsOf(1)}, openBundle), Crashes: 1, Lost: 1,
			Parties: []Party{saver("save", eventsOf(2, 5)), taker("take a", 1), dequeuer("take b")},
		},
		{
			Name: "peek-dequeue-stale", Quick: true, Text: "on a Session account: a peek while the open bundle is dequeued, a stale read",
			Session: true, Stale: 1, Behind: 2,
			Prepare: prepareSaves(list{eventsOf(1, 2, 3)}, openBundle),
			Parties: []Party{peeker("peek"), dequeuer("dequeue")},
		},
		{
			Name: "peek-dequeue-stale-twice", Text: "the same with two stale reads and a lost reply",
			Session: true, Stale: 2, Behind: 2, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1, 2, 3)}, openBundle),
			Parties: []Party{peeker("peek"), dequeuer("dequeue")},
		},
		{
			Name: "dequeue-then-peek-stale", Quick: true, Text: "on a Session account: a peek begins after the dequeue, a stale read",
			Session: true, Stale: 1, Behind: 3,
			Prepare: prepareSaves(list{eventsOf(1, 2, 3)}, openBundle),
			Parties: []Party{dequeuer("dequeue"), taker("take", 1).startAfter(1)},
		},
		{
			Name: "dequeue-then-peek-stale-twice", Text: "the same with two stale reads and two peeks",
			Session: true, Stale: 2, Behind: 3,
			Prepare: prepareSaves(list{eventsOf(1, 2, 3)}, openBundle),
			Parties: []Party{dequeuer("dequeue"), taker("take", 2).startAfter(1)},
		},
		{
			Name: "save-then-peek", Quick: true, Text: "a peek begins when the save is done",
			Prepare: prepareSaves(list{eventsOf(1)}, takeBundle),
			Parties: []Party{saver("save", eventsOf(2, 3)), taker("take", 2).startAfter(1)},
		},
		{
			Name: "save-peek-stale-crash-cap1", Quick: true, Text: "as in the model: drawers of one event, a saver, one who takes; a crash, a stale read",
			Session: true, Stale: 1, Behind: 2, Crashes: 1, Capacity: 1,
			Prepare: prepareSaves(list{eventsOf(3)}, takeBundle),
			Parties: []Party{saver("save", eventsOf(1, 5)), taker("take", 1)},
		},
		{
			Name: "two-savers-one-peeker", Text: "as in the model: two savers, one who peeks; a crash, a stale read",
			Session: true, Stale: 1, Crashes: 1,
			Prepare: prepareSaves(list{eventsOf(1)}, takeBundle),
			Parties: []Party{saver("save a", eventsOf(3)).makePatient(), saver("save b", eventsOf(5)).makePatient(), peeker("peek")},
		},
		{
			Name: "two-savers-undo-one-peeker", Text: "the same, and one of them may roll back a live Save",
			Session: true, Stale: 1, Crashes: 1, Claims: 1,
			Prepare: prepareSaves(list{eventsOf(1)}, takeBundle),
			Parties: []Party{saver("save a", eventsOf(3)).makePatient(), saver("save b", eventsOf(5)), peeker("peek")},
		},
		{
			Name: "save-take-apart-stale", Text: "as in the model: two groups, a saver, one who takes; a stale read",
			Session: true, Stale: 1,
			Prepare: prepareSaves(list{eventsOfGroups(1, 2)}),
			Parties: []Party{saver("save", eventsOfGroups(3, 4)), taker("take", 2)},
		},
		{
			Name: "tail-save-save", Quick: true, Text: "two processes save one event each into a tail; a crash, a lost reply",
			Tail: 2, Crashes: 1, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1)}),
			Parties: []Party{saver("save a", eventsOf(3)), saver("save b", eventsOf(5))},
		},
		{
			Name: "tail-save-same", Quick: true, Text: "two processes save the same event into a tail; a crash, a lost reply",
			Tail: 2, Crashes: 1, Lost: 1,
			Parties: []Party{saver("save a", eventsOf(1)), saver("save b", eventsOf(1, 3))},
		},
		{
			Name: "tail-flush-flush", Quick: true, Text: "two processes flush a full tail and save; a crash",
			Tail: 2, Crashes: 1,
			Prepare: prepareSaves(list{eventsOf(1, 3)}),
			Parties: []Party{saver("save a", eventsOf(5)), saver("save b", eventsOf(7))},
		},
		{
			Name: "tail-flush-flush-lost", Quick: true, Text: "the same with a lost reply",
			Tail: 2, Crashes: 1, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1, 3)}),
			Parties: []Party{saver("save a", eventsOf(5)), saver("save b", eventsOf(7))},
		},
		{
			Name: "tail-flush-counted", Quick: true, Text: "two processes flush a tail whose drawer has pages; a crash, a lost reply",
			Tail: 2, Capacity: 6, Crashes: 1, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1, 3), eventsOf(5, 7)}),
			Parties: []Party{saver("save a", eventsOf(9)), saver("save b", eventsOf(11))},
		},
		{
			Name: "tail-flush-full", Quick: true, Text: "two processes flush the tail of a full drawer and begin another; a crash",
			Tail: 2, Capacity: 2, Crashes: 1,
			Prepare: prepareSaves(list{eventsOf(1, 3)}),
			Parties: []Party{saver("save a", eventsOf(5)), saver("save b", eventsOf(7))},
		},
		{
			Name: "tail-small-large", Quick: true, Text: "a large Save flushes the tail to which another process saves; a crash",
			Tail: 2, Crashes: 1,
			Prepare: prepareSaves(list{eventsOf(1)}),
			Parties: []Party{saver("large save", eventsOf(3, 5, 7)).makePatient(), saver("small save", eventsOf(9)).makePatient()},
		},
		{
			Name: "tail-large-crash-small", Text: "a large Save crashes in a cabinet that had a tail, a small one rolls it back",
			Tail: 2, Crashes: 1, Claims: 1,
			Prepare: prepareSaves(list{eventsOf(1)}),
			Parties: []Party{saver("large save", eventsOf(3, 5, 7)).makePatient(), saver("small save", eventsOf(2))},
		},
		{
			Name: "tail-flush-take", Quick: true, Text: "an actor takes what lies in a tail that is flushed",
			Tail:    2,
			Prepare: prepareSaves(list{eventsOf(1, 3)}),
			Parties: []Party{saver("save", eventsOf(5)), taker("take", 2)},
		},
		{
			Name: "tail-flush-take-stale", Quick: true, Text: "the same on a Session account, a stale read; a crash",
			Tail: 2, Session: true, Stale: 1, Behind: 3, Crashes: 1,
			Prepare: prepareSaves(list{eventsOf(1, 3)}),
			Parties: []Party{saver("save", eventsOf(5)), taker("take", 2)},
		},
		{
			Name: "tail-flush-dequeue", Quick: true, Text: "a bundle of a tail is dequeued while the tail is flushed; a crash, a lost reply",
			Tail: 2, Crashes: 1, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1, 3)}, openBundle),
			Parties: []Party{saver("save", eventsOf(5)), dequeuer("dequeue")},
		},
		{
			Name: "tail-choice", Quick: true, Text: "an actor takes from two cabinets, of which one is flushed",
			Tail:    2,
			Prepare: prepareSaves(list{eventsOf(1, 3), eventsOf(2)}),
			Parties: []Party{saver("save", eventsOf(5)), taker("take", 3)},
		},
		{
			Name: "tail-save-flush-take-lost", Text: "two processes save and flush, an actor takes on a Session account; a crash, a lost reply, a stale read",
			Tail: 2, Session: true, Stale: 1, Behind: 2, Crashes: 1, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1)}),
			Parties: []Party{saver("save a", eventsOf(3), eventsOf(5)), saver("save b", eventsOf(3)), taker("take", 2)},
		},
		{
			Name: "tail-limits", Quick: true, Text: "two processes with different limits of a tail save and flush; a crash, a lost reply",
			Tail: 2, Crashes: 1, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1, 3)}),
			Parties: []Party{saver("save a", eventsOf(5)).withTailLimit(1), saver("save b", eventsOf(7)).withTailLimit(3)},
		},
		{
			Name: "tail-limits-none", Text: "one process knows tails and writes none, another writes them; a crash",
			Tail: 2, Crashes: 1,
			Prepare: prepareSaves(list{eventsOf(1)}),
			Parties: []Party{saver("save a", eventsOf(3)).withTailLimit(-1).makePatient(), saver("save b", eventsOf(5)).makePatient()},
		},
		{
			Name: "tail-flush-all", Quick: true, Text: "an operator has all tails flushed while a process saves to one; a crash",
			Tail: 2, Crashes: 1,
			Prepare: prepareSaves(list{eventsOf(1)}),
			Parties: []Party{flushesAll("check"), saver("save", eventsOf(3))},
		},
		{
			Name: "tail-flush-all-take", Text: "an operator has all tails flushed while an actor takes what is in one; a lost reply",
			Tail: 2, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1, 2)}),
			Parties: []Party{flushesAll("check"), taker("take", 2)},
		},
		{
			Name: "tail-sweep-save", Quick: true, Text: "a sweep removes a drawer that was in a tail only while a process saves to it; a crash, a lost reply",
			Tail: 2, Sweeps: true, Crashes: 1, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1)}, takeBundle),
			Parties: []Party{sweeper("sweep"), saver("save", eventsOf(3))},
		},
		{
			Name: "tail-sweep-flush", Quick: true, Text: "a sweep closes a drawer while its full tail is flushed; a crash",
			Tail: 2, Capacity: 6, Sweeps: true, Crashes: 1,
			Prepare: prepareSaves(list{eventsOf(1, 3)}, takeBundle),
			Parties: []Party{sweeper("sweep"), saver("save", eventsOf(5))},
		},
		{
			Name: "tail-sweep-take", Quick: true, Text: "a sweep while an actor takes what is in a tail; a crash, a lost reply",
			Tail: 2, Sweeps: true, Crashes: 1, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1), eventsOf(3)}, openBundle),
			Parties: []Party{sweeper("sweep"), dequeuer("dequeue")},
		},
		{
			Name: "tail-sweep-sweep", Quick: true, Text: "two sweeps of a drawer that is in a tail only",
			Tail: 2, Sweeps: true,
			Prepare: prepareSaves(list{eventsOf(1)}, takeBundle),
			Parties: []Party{sweeper("sweep a"), sweeper("sweep b")},
		},
		{
			Name: "tail-sweep-sweep-crash", Text: "two sweeps of a drawer that is in a tail and in a page; a crash, a lost reply",
			Tail: 2, Capacity: 6, Sweeps: true, Crashes: 1, Lost: 1,
			Prepare: prepareSaves(list{eventsOf(1, 3), eventsOf(5)}, takeBundle),
			Parties: []Party{sweeper("sweep a"), sweeper("sweep b")},
		},
	}, slices.Concat(contentScenarios(), watchScenarios(), objectScenarios(), topicScenarios(), forgetScenarios(), crawlScenarios())...)
}
