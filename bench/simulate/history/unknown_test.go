package history_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/history"
)

func TestWhatHasNoAnswerMayHaveHappenedAtAnyLaterTimeOrNever(t *testing.T) {
	lost := func(s *tale, ids string) {
		s.Send(0, s.tick(), events("A1", ids)...)(s.tick(), history.Unknown)
	}
	check(t, history.Options{}, []rule{
		{"a Send that did not", legal, func(s *tale) {
			lost(s, "1")
			s.none()
		}},
		{"a Send that did", legal, func(s *tale) {
			lost(s, "1")
			s.shows(bundle("x", "A1", "1"))
		}},
		{"a Send that did later", legal, func(s *tale) {
			lost(s, "1")
			s.send("A1", "2")
			s.shows(bundle("x", "A1", "2"))
			s.done("x")
			s.shows(bundle("y", "A1", "1"))
		}},
		{"a Send that was never ended", legal, func(s *tale) {
			s.Send(0, s.tick(), event("1", "A1"))
			s.shows(bundle("x", "A1", "1"))
		}},
		{"a Send is not undone once it is seen", illegal, func(s *tale) {
			lost(s, "1")
			s.shows(bundle("x", "A1", "1"))
			s.none()
		}},
		{"sent again with success", illegal, func(s *tale) {
			lost(s, "1")
			s.send("A1", "1")
			s.none()
		}},
		{"before it began", illegal, func(s *tale) {
			s.shows(bundle("x", "A1", "1"))
			lost(s, "1")
		}},
		{"the last of many of the same", legal, func(s *tale) {
			for range 5 {
				lost(s, "1")
			}
			s.send("A1", "2")
			s.shows(bundle("x", "A1", "2"))
			s.done("x")
			lost(s, "1")
			s.shows(bundle("y", "A1", "1"))
		}},
		{"before the first of many of the same", illegal, func(s *tale) {
			s.shows(bundle("x", "A1", "1"))
			lost(s, "1")
			lost(s, "1")
		}},
		{"a Dequeue that did not", legal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1"))
			s.dequeue("x", history.Unknown)
			s.shows(bundle("x", "A1", "1"))
			s.done("x")
		}},
		{"a Dequeue that did", legal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1"))
			s.dequeue("x", history.Unknown)
			s.dequeue("x", history.NotFound)
			s.none()
		}},
		{"a Dequeue is not undone once it is seen", illegal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1"))
			s.dequeue("x", history.Unknown)
			s.dequeue("x", history.NotFound)
			s.shows(bundle("x", "A1", "1"))
		}},
		{"a Peek whose bundle another shows", legal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "B1"))
			s.Peek(1, s.tick(), "B")(s.tick(), history.Unknown, history.Bundle{})
			s.shows(bundle("y", "B1", "2")) // as B was asked for, it begins with the first of B
		}},
		{"without that Peek", illegal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "B1"))
			s.Peek(1, s.tick(), "A")(s.tick(), history.Unknown, history.Bundle{})
			s.shows(bundle("y", "B1", "2"))
		}},
		{"a Peek that shows the next, for its own was dequeued while it looked", legal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "B1"), event("3", "B2"))
			b := s.Peek(1, s.tick(), "B")
			s.shows(bundle("y", "B1", "2"))
			s.done("y")
			b(s.tick(), history.Shown, bundle("z", "B2", "3"))
		}},
	})
}

func TestNoneIsAboutWhatWasThereWhenThePeekBegan(t *testing.T) {
	rules := []rule{
		{"with an event there", illegal, func(s *tale) {
			s.send("A1", "1")
			s.none()
		}},
		{"with an event there in another group", legal, func(s *tale) {
			s.send("A1", "1")
			s.none("B")
		}},
		{"with an event that came meanwhile, before what was there had gone", legal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1"))
			late := s.Peek(3, s.tick())
			s.send("A1", "2")
			s.done("x")
			late(s.tick(), history.None, history.Bundle{})
		}},
	}
	check(t, history.Options{}, rules)
	rules[0].want = legal
	check(t, history.Options{StaleReads: true}, rules)
}

func TestOldReadsExcuseNothingButAMissedBundle(t *testing.T) {
	two := func(s *tale) {
		s.sendAll(event("1", "A1"), event("2", "B1"))
		s.shows(bundle("y", "B1", "2"), "B")
	}
	check(t, history.Options{StaleReads: true}, []rule{
		{"a new one though another group has one", legal, func(s *tale) {
			two(s)
			s.shows(bundle("x", "A1", "1"))
		}},
		{"the younger of two", legal, func(s *tale) {
			two(s)
			s.shows(bundle("x", "A1", "1"), "A")
			s.shows(bundle("x", "A1", "1"))
		}},
		{"a new one of the same group", illegal, func(s *tale) {
			two(s)
			s.send("B2", "3")
			s.shows(bundle("z", "B2", "3"), "B")
		}},
		{"one that was dequeued", illegal, func(s *tale) {
			two(s)
			s.done("y")
			s.shows(bundle("y", "B1", "2"))
		}},
		{"an open one that is not found", illegal, func(s *tale) {
			two(s)
			s.dequeue("y", history.NotFound)
		}},
	})
	check(t, history.Options{AnyOpen: true}, []rule{
		{"the younger of two, if no clock can tell", legal, func(s *tale) {
			two(s)
			s.shows(bundle("x", "A1", "1"), "A")
			s.shows(bundle("x", "A1", "1"))
		}},
		{"but no new one", illegal, func(s *tale) {
			two(s)
			s.shows(bundle("x", "A1", "1"))
		}},
	})
}

func TestAnIllegalHistorySaysHowFarItIsPossible(t *testing.T) {
	s := &tale{}
	s.send("A1", "1")
	s.shows(bundle("x", "A1", "1"))
	s.done("x")
	s.shows(bundle("x", "A1", "1"))
	result := s.History().Check(history.Options{})
	require.Equal(t, illegal, result.Verdict)
	require.Equal(t, []string{
		"client 0, 1-2: send 1 in A1: accepted",
		"client 1, 3-4: peek: shown x of A1: 1",
		"client 2, 5-6: dequeue x: done",
	}, result.Longest)
	require.Equal(t, []string{"client 1, 7-8: peek: shown x of A1: 1"}, result.Left)
	require.Contains(t, result.String(), "illegal after")
}

func TestASearchThatIsGivenUpHasShownNothing(t *testing.T) {
	s := &tale{}
	s.send("A1", "1")
	s.shows(bundle("x", "A1", "1"))
	s.done("x")
	result := s.History().Check(history.Options{Steps: 2})
	require.Equal(t, history.GaveUp, result.Verdict)
	require.Equal(t, 2, result.Steps)
}

// Clients that are not answered send the same again and again.
func TestASearchPlacesOneOfManySendsOfTheSame(t *testing.T) {
	s := &tale{}
	for range 12 {
		for client := range 3 {
			s.Send(client, s.tick(), event(fmt.Sprint(client), "A1"))(s.tick(), history.Unknown)
		}
	}
	s.shows(bundle("x", "A1", "2 0 1"))
	require.Equal(t, 4, s.History().Placed(history.Options{}))
	require.Equal(t, legal, s.History().Check(history.Options{}).Verdict)
}

func TestASearchNeedsNoClock(t *testing.T) {
	h := crowdHistory(t, 1, 4, 60, 0.1) // out here, where time goes on and tells which bundle was open first
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.Equal(t, legal, h.Check(history.Options{}).Verdict)
		require.Equal(t, began, time.Now())
	})
}

func TestAHistoryOfNothingIsLegal(t *testing.T) {
	require.Equal(t, legal, new(history.Recorder).History().Check(history.Options{}).Verdict)
}
