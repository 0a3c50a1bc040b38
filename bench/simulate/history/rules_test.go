package history_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/history"
)

// A scriptedHistory is a history that a test writes step by step. By default its operations are sequential. Cabinet "A1"
// is in group "A".
type scriptedHistory struct {
	history.Recorder
	now int64
}

func (s *scriptedHistory) nextTick() int64 { s.now++; return s.now }

// newEvent returns an event of a cabinet. If the id ends with +, the event must be alone in its bundle.
func newEvent(id, cabinet string) history.Event {
	plain, alone := strings.CutSuffix(id, "+")
	return history.Event{ID: plain, Cabinet: cabinet, Group: cabinet[:1], Bundleable: !alone, Weight: 1}
}

func newEvents(cabinet, ids string) []history.Event {
	var all []history.Event
	for _, id := range strings.Fields(ids) {
		all = append(all, newEvent(id, cabinet))
	}
	return all
}

func newBundle(id, cabinet, ids string) history.Bundle {
	return history.Bundle{ID: id, Group: cabinet[:1], Cabinet: cabinet, Events: strings.Fields(ids)}
}

func (s *scriptedHistory) sendEvents(cabinet, ids string) { s.sendAll(newEvents(cabinet, ids)...) }

func (s *scriptedHistory) sendAll(all ...history.Event) {
	s.Send(0, s.nextTick(), all...)(s.nextTick(), history.Accepted)
}

func (s *scriptedHistory) peekShown(b history.Bundle, groups ...string) {
	s.Peek(1, s.nextTick(), groups...)(s.nextTick(), history.Returned, b)
}

func (s *scriptedHistory) peekNone(groups ...string) {
	s.Peek(1, s.nextTick(), groups...)(s.nextTick(), history.None, history.Bundle{})
}

func (s *scriptedHistory) dequeueBundle(id string, o history.Outcome) {
	s.Dequeue(2, s.nextTick(), id)(s.nextTick(), o)
}

func (s *scriptedHistory) dequeueDone(id string) { s.dequeueBundle(id, history.Done) }

type ruleCase struct {
	name string
	want history.Verdict
	tell func(s *scriptedHistory)
}

func checkRules(t *testing.T, opts history.Options, rules []ruleCase) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			s := &scriptedHistory{}
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

func TestSend_IsStoredOnceAndInOrder(t *testing.T) {
	checkRules(t, history.Options{}, []ruleCase{
		{"sent, shown, dequeued, empty", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1 2")
			s.peekShown(newBundle("x", "A1", "1 2"))
			s.dequeueDone("x")
			s.peekNone()
		}},
		{"a lost event", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1 2")
			s.peekShown(newBundle("x", "A1", "1"))
			s.dequeueDone("x")
			s.peekNone()
		}},
		{"an event that is skipped", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1 2 3")
			s.peekShown(newBundle("x", "A1", "1 3"))
		}},
		{"an event that was never sent", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1 2"))
		}},
		{"an event of a Send that was rejected", illegal, func(s *scriptedHistory) {
			s.Send(0, s.nextTick(), newEvent("1", "A1"))(s.nextTick(), history.Rejected)
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"an event in two bundles", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1 2")
			s.peekShown(newBundle("x", "A1", "1"))
			s.dequeueDone("x")
			s.peekShown(newBundle("y", "A1", "1 2"))
		}},
		{"an event twice in a bundle", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1 1"))
		}},
		{"an event that was sent twice is returned once", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.sendEvents("A1", "1 2")
			s.peekShown(newBundle("x", "A1", "1 2"))
			s.dequeueDone("x")
			s.sendEvents("A1", "2")
			s.peekNone()
		}},
		{"out of the order of the Sends", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.sendEvents("A1", "2")
			s.peekShown(newBundle("x", "A1", "2 1"))
		}},
		{"out of the order within a Send", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1 2")
			s.peekShown(newBundle("x", "A1", "2"))
		}},
		{"in another cabinet than it was sent to", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A2", "1"))
		}},
		{"of two cabinets", illegal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "A2"))
			s.peekShown(newBundle("x", "A1", "1 2"))
		}},
		{"of a group that was not requested", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"), "B")
		}},
		{"concurrent Sends in any order", legal, func(s *scriptedHistory) {
			one := s.Send(0, s.nextTick(), newEvent("1", "A1"))
			s.sendEvents("A1", "2")
			one(s.nextTick(), history.Accepted)
			s.peekShown(newBundle("x", "A1", "2 1"))
		}},
	})
}

func TestID_HasOneContent(t *testing.T) {
	other := newEvent("1", "A1")
	other.Content = "other"
	recordSend := func(s *scriptedHistory, t history.Tally, all ...history.Event) {
		s.SendCounted(0, s.nextTick(), all...)(s.nextTick(), history.Accepted, t)
	}
	checkRules(t, history.Options{}, []ruleCase{
		{"a conflict stores nothing", legal, func(s *scriptedHistory) {
			recordSend(s, history.Tally{Accepted: 1}, newEvent("1", "A1"))
			recordSend(s, history.Tally{Accepted: 1, Conflicts: 1}, other, newEvent("2", "A1"))
			recordSend(s, history.Tally{Duplicates: 2}, newEvent("1", "A1"), newEvent("2", "A1"))
			s.peekShown(newBundle("x", "A1", "1 2"))
		}},
		{"a duplicate that is counted as new", illegal, func(s *scriptedHistory) {
			recordSend(s, history.Tally{Accepted: 1}, newEvent("1", "A1"))
			recordSend(s, history.Tally{Accepted: 1}, newEvent("1", "A1"))
		}},
		{"a conflict that is counted as a duplicate", illegal, func(s *scriptedHistory) {
			recordSend(s, history.Tally{Accepted: 1}, newEvent("1", "A1"))
			recordSend(s, history.Tally{Duplicates: 1}, other)
		}},
		{"a new event that is counted as a duplicate", illegal, func(s *scriptedHistory) {
			recordSend(s, history.Tally{Duplicates: 1}, newEvent("1", "A1"))
		}},
	})
}

func TestSend_BecomesVisibleAtOneMoment(t *testing.T) {
	halves := func(s *scriptedHistory) (end func()) {
		both := s.Send(0, s.nextTick(), newEvent("1", "A1"), newEvent("2", "B1"))
		return func() { both(s.nextTick(), history.Accepted) }
	}
	checkRules(t, history.Options{}, []ruleCase{
		{"one cabinet and then the other", legal, func(s *scriptedHistory) {
			end := halves(s)
			s.peekNone("B")
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("y", "B1", "2"), "B")
			end()
		}},
		{"one half before the other", illegal, func(s *scriptedHistory) {
			end := halves(s)
			s.peekShown(newBundle("x", "B1", "2"), "B")
			s.sendEvents("A2", "3")
			s.peekShown(newBundle("y", "A2", "3"), "A")
			end()
		}},
		{"one half, and a younger event of the other cabinet", illegal, func(s *scriptedHistory) {
			end := halves(s)
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.sendEvents("B1", "3")
			s.peekShown(newBundle("y", "B1", "3"), "B")
			end()
		}},
		{"the younger half first, of a Peek of all groups", illegal, func(s *scriptedHistory) {
			end := halves(s)
			s.peekShown(newBundle("x", "B1", "2"))
			end()
		}},
		{"half of a Send in one cabinet", legal, func(s *scriptedHistory) { // a bundle may have fewer events than are waiting
			both := s.Send(0, s.nextTick(), newEvents("A1", "1 2")...)
			s.peekShown(newBundle("x", "A1", "1"))
			both(s.nextTick(), history.Accepted)
		}},
	})
}

func TestBundle_BeginsWithTheFirstWaitingEvent(t *testing.T) {
	checkRules(t, history.Options{}, []ruleCase{
		{"the first cabinet of a group", legal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "A2"), newEvent("3", "A1"))
			s.peekShown(newBundle("x", "A1", "1 3"), "A")
			s.dequeueDone("x")
			s.peekShown(newBundle("y", "A2", "2"), "A")
		}},
		{"the second cabinet of a group", illegal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "A2"))
			s.peekShown(newBundle("x", "A2", "2"), "A")
		}},
		{"the second group, of a Peek of all groups", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.sendEvents("B1", "2")
			s.peekShown(newBundle("x", "B1", "2"))
		}},
		{"the second group, of a Peek of this group", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.sendEvents("B1", "2")
			s.peekShown(newBundle("x", "B1", "2"), "B")
		}},
	})
}

func TestBundle_KeepsTheRulesOfBundling(t *testing.T) {
	heavy := func(id string, kb int64) history.Event {
		e := newEvent(id, "A1")
		e.Weight = kb
		return e
	}
	checkRules(t, history.Options{}, []ruleCase{
		{"an event that is not bundleable, alone", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1+ 2 3+")
			s.peekShown(newBundle("x", "A1", "1"))
			s.dequeueDone("x")
			s.peekShown(newBundle("y", "A1", "2"))
		}},
		{"an event that is not bundleable, first", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1+ 2")
			s.peekShown(newBundle("x", "A1", "1 2"))
		}},
		{"an event that is not bundleable, last", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1 2+")
			s.peekShown(newBundle("x", "A1", "1 2"))
		}},
		{"events of the maximum weight", legal, func(s *scriptedHistory) {
			s.sendAll(heavy("1", 51_199), heavy("2", 1))
			s.peekShown(newBundle("x", "A1", "1 2"))
		}},
		{"events above the maximum weight", illegal, func(s *scriptedHistory) {
			s.sendAll(heavy("1", 51_200), heavy("2", 1))
			s.peekShown(newBundle("x", "A1", "1 2"))
		}},
		{"a single event above the maximum weight", legal, func(s *scriptedHistory) {
			s.sendAll(heavy("1", 99_999))
			s.peekShown(newBundle("x", "A1", "1"))
		}},
	})
}
