package history_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/history"
)

func TestLostAnswer_AllowsAnyLaterTimeOrNever(t *testing.T) {
	lost := func(s *scriptedHistory, ids string) {
		s.Send(0, s.nextTick(), newEvents("A1", ids)...)(s.nextTick(), history.Unknown)
	}
	checkRules(t, history.Options{}, []ruleCase{
		{"a Send that was not applied", legal, func(s *scriptedHistory) {
			lost(s, "1")
			s.peekNone()
		}},
		{"a Send that was applied", legal, func(s *scriptedHistory) {
			lost(s, "1")
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"a Send that was applied later", legal, func(s *scriptedHistory) {
			lost(s, "1")
			s.sendEvents("A1", "2")
			s.peekShown(newBundle("x", "A1", "2"))
			s.dequeueDone("x")
			s.peekShown(newBundle("y", "A1", "1"))
		}},
		{"a Send that was never ended", legal, func(s *scriptedHistory) {
			s.Send(0, s.nextTick(), newEvent("1", "A1"))
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"an event disappears after a Peek returned it", illegal, func(s *scriptedHistory) {
			lost(s, "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.peekNone()
		}},
		{"sent again with success", illegal, func(s *scriptedHistory) {
			lost(s, "1")
			s.sendEvents("A1", "1")
			s.peekNone()
		}},
		{"before it began", illegal, func(s *scriptedHistory) {
			s.peekShown(newBundle("x", "A1", "1"))
			lost(s, "1")
		}},
		{"the last of many equal Sends was applied", legal, func(s *scriptedHistory) {
			for range 5 {
				lost(s, "1")
			}
			s.sendEvents("A1", "2")
			s.peekShown(newBundle("x", "A1", "2"))
			s.dequeueDone("x")
			lost(s, "1")
			s.peekShown(newBundle("y", "A1", "1"))
		}},
		{"an event appears before the first of many equal Sends", illegal, func(s *scriptedHistory) {
			s.peekShown(newBundle("x", "A1", "1"))
			lost(s, "1")
			lost(s, "1")
		}},
		{"a Dequeue that was not applied", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.dequeueBundle("x", history.Unknown)
			s.peekShown(newBundle("x", "A1", "1"))
			s.dequeueDone("x")
		}},
		{"a Dequeue that was applied", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.dequeueBundle("x", history.Unknown)
			s.dequeueBundle("x", history.NotFound)
			s.peekNone()
		}},
		{"a bundle reappears after a Peek showed its Dequeue", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.dequeueBundle("x", history.Unknown)
			s.dequeueBundle("x", history.NotFound)
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"a later Peek returns the bundle of an unanswered Peek", legal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			s.Peek(1, s.nextTick(), "B")(s.nextTick(), history.Unknown, history.Bundle{})
			s.peekShown(newBundle("y", "B1", "2")) // a Peek of group B begins with the first event of B
		}},
		{"without that Peek", illegal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			s.Peek(1, s.nextTick(), "A")(s.nextTick(), history.Unknown, history.Bundle{})
			s.peekShown(newBundle("y", "B1", "2"))
		}},
		{"a Peek returns the next bundle, because its own was dequeued during the Peek", legal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"), newEvent("3", "B2"))
			b := s.Peek(1, s.nextTick(), "B")
			s.peekShown(newBundle("y", "B1", "2"))
			s.dequeueDone("y")
			b(s.nextTick(), history.Returned, newBundle("z", "B2", "3"))
		}},
	})
}

func TestNone_ConcernsEventsBeforeThePeek(t *testing.T) {
	rules := []ruleCase{
		{"with an event there", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekNone()
		}},
		{"with an event there in another group", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekNone("B")
		}},
		{"with an event that was sent before the Dequeue of the earlier events", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			late := s.Peek(3, s.nextTick())
			s.sendEvents("A1", "2")
			s.dequeueDone("x")
			late(s.nextTick(), history.None, history.Bundle{})
		}},
	}
	checkRules(t, history.Options{}, rules)
	rules[0].want = legal
	checkRules(t, history.Options{StaleReads: true}, rules)
}

func TestStaleReads_AllowOnlyMissedBundles(t *testing.T) {
	two := func(s *scriptedHistory) {
		s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
		s.peekShown(newBundle("y", "B1", "2"), "B")
	}
	checkRules(t, history.Options{StaleReads: true}, []ruleCase{
		{"a new bundle while another group has an open bundle", legal, func(s *scriptedHistory) {
			two(s)
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"the younger of two open bundles", legal, func(s *scriptedHistory) {
			two(s)
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"a new bundle of a group with an open bundle", illegal, func(s *scriptedHistory) {
			two(s)
			s.sendEvents("B2", "3")
			s.peekShown(newBundle("z", "B2", "3"), "B")
		}},
		{"a bundle that was dequeued", illegal, func(s *scriptedHistory) {
			two(s)
			s.dequeueDone("y")
			s.peekShown(newBundle("y", "B1", "2"))
		}},
		{"a Dequeue does not find an open bundle", illegal, func(s *scriptedHistory) {
			two(s)
			s.dequeueBundle("y", history.NotFound)
		}},
	})
	checkRules(t, history.Options{AnyOpen: true}, []ruleCase{
		{"the younger of two open bundles, if clocks disagree", legal, func(s *scriptedHistory) {
			two(s)
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"but no new one", illegal, func(s *scriptedHistory) {
			two(s)
			s.peekShown(newBundle("x", "A1", "1"))
		}},
	})
}

func TestIllegalHistory_ShowsItsLongestOrder(t *testing.T) {
	s := &scriptedHistory{}
	s.sendEvents("A1", "1")
	s.peekShown(newBundle("x", "A1", "1"))
	s.dequeueDone("x")
	s.peekShown(newBundle("x", "A1", "1"))
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

func TestCheck_GivesUpAtItsLimit(t *testing.T) {
	s := &scriptedHistory{}
	s.sendEvents("A1", "1")
	s.peekShown(newBundle("x", "A1", "1"))
	s.dequeueDone("x")
	result := s.History().Check(history.Options{Steps: 2})
	require.Equal(t, history.GaveUp, result.Verdict)
	require.Equal(t, 2, result.Steps)
}

// Several clients repeat the same Send, because none receives an answer. The search must place only
// one of these Sends.
func TestCheck_PlacesOneOfManyEqualSends(t *testing.T) {
	s := &scriptedHistory{}
	for range 12 {
		for client := range 3 {
			s.Send(client, s.nextTick(), newEvent(fmt.Sprint(client), "A1"))(s.nextTick(), history.Unknown)
		}
	}
	s.peekShown(newBundle("x", "A1", "2 0 1"))
	require.Equal(t, 4, s.History().Placed(history.Options{}))
	require.Equal(t, legal, s.History().Check(history.Options{}).Verdict)
}

func TestCheck_NeedsNoClock(t *testing.T) {
	h := randomHistory(t, 1, 4, 60, 0.1) // outside a bubble the clock advances, so the order of openings is known
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.Equal(t, legal, h.Check(history.Options{}).Verdict)
		require.Equal(t, began, time.Now())
	})
}

func TestEmptyHistory_IsLegal(t *testing.T) {
	require.Equal(t, legal, new(history.Recorder).History().Check(history.Options{}).Verdict)
}
