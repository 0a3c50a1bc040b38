package history_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/history"
)

// A tale is a history that is told one operation after the other, save where it
// says otherwise. Cabinet "A1" is of group "A".
type tale struct {
	history.Recorder
	now int64
}

func (s *tale) tick() int64 { s.now++; return s.now }

// event returns the event called id of a cabinet; + after the id makes it one that
// travels alone.
func event(id, cabinet string) history.Event {
	plain, alone := strings.CutSuffix(id, "+")
	return history.Event{ID: plain, Cabinet: cabinet, Group: cabinet[:1], Bundleable: !alone, Weight: 1}
}

func events(cabinet, ids string) []history.Event {
	var all []history.Event
	for _, id := range strings.Fields(ids) {
		all = append(all, event(id, cabinet))
	}
	return all
}

func bundle(id, cabinet, ids string) history.Bundle {
	return history.Bundle{ID: id, Group: cabinet[:1], Cabinet: cabinet, Events: strings.Fields(ids)}
}

func (s *tale) send(cabinet, ids string) { s.sendAll(events(cabinet, ids)...) }

func (s *tale) sendAll(all ...history.Event) {
	s.Send(0, s.tick(), all...)(s.tick(), history.Accepted)
}

func (s *tale) shows(b history.Bundle, groups ...string) {
	s.Peek(1, s.tick(), groups...)(s.tick(), history.Shown, b)
}

func (s *tale) none(groups ...string) {
	s.Peek(1, s.tick(), groups...)(s.tick(), history.None, history.Bundle{})
}

func (s *tale) dequeue(id string, o history.Outcome) { s.Dequeue(2, s.tick(), id)(s.tick(), o) }

func (s *tale) done(id string) { s.dequeue(id, history.Done) }

type rule struct {
	name string
	want history.Verdict
	tell func(s *tale)
}

func check(t *testing.T, opts history.Options, rules []rule) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			s := &tale{}
			r.tell(s)
			result := s.History().Check(opts)
			require.Equal(t, r.want, result.Verdict, "%s\n%s", result, s.History())
		})
	}
}

const (
	legal   = history.Legal
	illegal = history.Illegal
)

func TestNothingIsLostDoubledOrReordered(t *testing.T) {
	check(t, history.Options{}, []rule{
		{"sent, shown, dequeued, empty", legal, func(s *tale) {
			s.send("A1", "1 2")
			s.shows(bundle("x", "A1", "1 2"))
			s.done("x")
			s.none()
		}},
		{"a lost event", illegal, func(s *tale) {
			s.send("A1", "1 2")
			s.shows(bundle("x", "A1", "1"))
			s.done("x")
			s.none()
		}},
		{"an event that is skipped", illegal, func(s *tale) {
			s.send("A1", "1 2 3")
			s.shows(bundle("x", "A1", "1 3"))
		}},
		{"an event that nobody has sent", illegal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1 2"))
		}},
		{"an event of a Send that was rejected", illegal, func(s *tale) {
			s.Send(0, s.tick(), event("1", "A1"))(s.tick(), history.Rejected)
			s.shows(bundle("x", "A1", "1"))
		}},
		{"an event in two bundles", illegal, func(s *tale) {
			s.send("A1", "1 2")
			s.shows(bundle("x", "A1", "1"))
			s.done("x")
			s.shows(bundle("y", "A1", "1 2"))
		}},
		{"an event twice in a bundle", illegal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1 1"))
		}},
		{"an event that was sent twice is one", legal, func(s *tale) {
			s.send("A1", "1")
			s.send("A1", "1 2")
			s.shows(bundle("x", "A1", "1 2"))
			s.done("x")
			s.send("A1", "2")
			s.none()
		}},
		{"out of the order of the Sends", illegal, func(s *tale) {
			s.send("A1", "1")
			s.send("A1", "2")
			s.shows(bundle("x", "A1", "2 1"))
		}},
		{"out of the order within a Send", illegal, func(s *tale) {
			s.send("A1", "1 2")
			s.shows(bundle("x", "A1", "2"))
		}},
		{"in another cabinet than it was sent to", illegal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A2", "1"))
		}},
		{"of two cabinets", illegal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "A2"))
			s.shows(bundle("x", "A1", "1 2"))
		}},
		{"of another group than was asked for", illegal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1"), "B")
		}},
		{"side by side, Sends may come in any order", legal, func(s *tale) {
			one := s.Send(0, s.tick(), event("1", "A1"))
			s.send("A1", "2")
			one(s.tick(), history.Accepted)
			s.shows(bundle("x", "A1", "2 1"))
		}},
	})
}

func TestAnIdStandsForOneContent(t *testing.T) {
	other := event("1", "A1")
	other.Content = "other"
	told := func(s *tale, t history.Tally, all ...history.Event) {
		s.SendCounted(0, s.tick(), all...)(s.tick(), history.Accepted, t)
	}
	check(t, history.Options{}, []rule{
		{"a conflict stores nothing", legal, func(s *tale) {
			told(s, history.Tally{Accepted: 1}, event("1", "A1"))
			told(s, history.Tally{Accepted: 1, Conflicts: 1}, other, event("2", "A1"))
			told(s, history.Tally{Duplicates: 2}, event("1", "A1"), event("2", "A1"))
			s.shows(bundle("x", "A1", "1 2"))
		}},
		{"a duplicate that is counted as new", illegal, func(s *tale) {
			told(s, history.Tally{Accepted: 1}, event("1", "A1"))
			told(s, history.Tally{Accepted: 1}, event("1", "A1"))
		}},
		{"a conflict that is counted as a duplicate", illegal, func(s *tale) {
			told(s, history.Tally{Accepted: 1}, event("1", "A1"))
			told(s, history.Tally{Duplicates: 1}, other)
		}},
		{"a new event that is counted as a duplicate", illegal, func(s *tale) {
			told(s, history.Tally{Duplicates: 1}, event("1", "A1"))
		}},
	})
}

func TestTheEventsOfASendComeTogether(t *testing.T) {
	halves := func(s *tale) (end func()) {
		both := s.Send(0, s.tick(), event("1", "A1"), event("2", "B1"))
		return func() { both(s.tick(), history.Accepted) }
	}
	check(t, history.Options{}, []rule{
		{"one cabinet and then the other", legal, func(s *tale) {
			end := halves(s)
			s.none("B")
			s.shows(bundle("x", "A1", "1"), "A")
			s.shows(bundle("y", "B1", "2"), "B")
			end()
		}},
		{"one half before the other", illegal, func(s *tale) {
			end := halves(s)
			s.shows(bundle("x", "B1", "2"), "B")
			s.send("A2", "3")
			s.shows(bundle("y", "A2", "3"), "A")
			end()
		}},
		{"one half, and a younger one of the other cabinet", illegal, func(s *tale) {
			end := halves(s)
			s.shows(bundle("x", "A1", "1"), "A")
			s.send("B1", "3")
			s.shows(bundle("y", "B1", "3"), "B")
			end()
		}},
		{"the younger half first, of a Peek of all groups", illegal, func(s *tale) {
			end := halves(s)
			s.shows(bundle("x", "B1", "2"))
			end()
		}},
		{"half of a Send in one cabinet", legal, func(s *tale) { // a bundle may end early
			both := s.Send(0, s.tick(), events("A1", "1 2")...)
			s.shows(bundle("x", "A1", "1"))
			both(s.tick(), history.Accepted)
		}},
	})
}

func TestABundleBeginsWithTheFirstOfAllThatWaits(t *testing.T) {
	check(t, history.Options{}, []rule{
		{"the first cabinet of a group", legal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "A2"), event("3", "A1"))
			s.shows(bundle("x", "A1", "1 3"), "A")
			s.done("x")
			s.shows(bundle("y", "A2", "2"), "A")
		}},
		{"the second cabinet of a group", illegal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "A2"))
			s.shows(bundle("x", "A2", "2"), "A")
		}},
		{"the second group, of all", illegal, func(s *tale) {
			s.send("A1", "1")
			s.send("B1", "2")
			s.shows(bundle("x", "B1", "2"))
		}},
		{"the second group, if only that is asked for", legal, func(s *tale) {
			s.send("A1", "1")
			s.send("B1", "2")
			s.shows(bundle("x", "B1", "2"), "B")
		}},
	})
}

func TestABundleKeepsTheRulesOfBundling(t *testing.T) {
	heavy := func(id string, kb int64) history.Event {
		e := event(id, "A1")
		e.Weight = kb
		return e
	}
	check(t, history.Options{}, []rule{
		{"one that travels alone, alone", legal, func(s *tale) {
			s.send("A1", "1+ 2 3+")
			s.shows(bundle("x", "A1", "1"))
			s.done("x")
			s.shows(bundle("y", "A1", "2"))
		}},
		{"one that travels alone, first", illegal, func(s *tale) {
			s.send("A1", "1+ 2")
			s.shows(bundle("x", "A1", "1 2"))
		}},
		{"one that travels alone, last", illegal, func(s *tale) {
			s.send("A1", "1 2+")
			s.shows(bundle("x", "A1", "1 2"))
		}},
		{"just light enough", legal, func(s *tale) {
			s.sendAll(heavy("1", 51_199), heavy("2", 1))
			s.shows(bundle("x", "A1", "1 2"))
		}},
		{"too heavy", illegal, func(s *tale) {
			s.sendAll(heavy("1", 51_200), heavy("2", 1))
			s.shows(bundle("x", "A1", "1 2"))
		}},
		{"too heavy, but alone", legal, func(s *tale) {
			s.sendAll(heavy("1", 99_999))
			s.shows(bundle("x", "A1", "1"))
		}},
	})
}
