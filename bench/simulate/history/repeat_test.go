package history_test

import (
	"testing"

	"github.com/messagehub/messagehub/bench/simulate/history"
)

func TestPeek_RepeatsTheOpenBundle(t *testing.T) {
	checkRules(t, history.Options{}, []ruleCase{
		{"the same bundle again, after further Sends", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.sendEvents("A1", "2")
			s.peekShown(newBundle("x", "A1", "1"))
			s.peekShown(newBundle("x", "A1", "1"), "A")
		}},
		{"the same bundle with more events", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.sendEvents("A1", "2")
			s.peekShown(newBundle("x", "A1", "1 2"))
		}},
		{"the same bundle with another body", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			b := newBundle("x", "A1", "1")
			s.peekShown(b)
			b.Body = "other"
			s.peekShown(b)
		}},
		{"the same events under another id", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.peekShown(newBundle("y", "A1", "1"))
		}},
		{"two open bundles in a group", illegal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "A2"))
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("y", "A2", "2"), "A")
		}},
		{"an open bundle in each group", legal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("y", "B1", "2"), "B")
		}},
		{"two concurrent Peeks return one bundle", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			first := s.Peek(1, s.nextTick())
			s.peekShown(newBundle("x", "A1", "1"))
			first(s.nextTick(), history.Returned, newBundle("x", "A1", "1"))
		}},
		{"two concurrent Peeks return two bundles", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1 2")
			first := s.Peek(1, s.nextTick())
			s.peekShown(newBundle("x", "A1", "1"))
			first(s.nextTick(), history.Returned, newBundle("y", "A1", "1 2"))
		}},
		{"no bundle while a bundle is open", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.peekNone()
		}},
		{"the older open bundle of two groups", legal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			s.peekShown(newBundle("y", "B1", "2"), "B")
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("y", "B1", "2"))
		}},
		{"the younger open bundle of two groups", illegal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			s.peekShown(newBundle("y", "B1", "2"), "B")
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"a new bundle while a bundle of another group is open", illegal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			s.peekShown(newBundle("y", "B1", "2"), "B")
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"a new bundle while another client opens a bundle of another group", legal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			all := s.Peek(3, s.nextTick())
			s.peekShown(newBundle("y", "B1", "2"), "B")
			s.peekShown(newBundle("y", "B1", "2"))
			all(s.nextTick(), history.Returned, newBundle("x", "A1", "1"))
		}},
	})
}

func TestDequeue_TakesEffectOnce(t *testing.T) {
	open := func(s *scriptedHistory) {
		s.sendEvents("A1", "1")
		s.peekShown(newBundle("x", "A1", "1"))
	}
	checkRules(t, history.Options{}, []ruleCase{
		{"the second Dequeue finds no bundle", legal, func(s *scriptedHistory) {
			open(s)
			s.dequeueDone("x")
			s.dequeueBundle("x", history.NotFound)
		}},
		{"two Dequeues succeed", illegal, func(s *scriptedHistory) {
			open(s)
			s.dequeueDone("x")
			s.dequeueDone("x")
		}},
		{"a Dequeue does not find an open bundle", illegal, func(s *scriptedHistory) {
			open(s)
			s.dequeueBundle("x", history.NotFound)
		}},
		{"a Dequeue of an unknown bundle succeeds", illegal, func(s *scriptedHistory) {
			open(s)
			s.dequeueDone("z")
		}},
		{"a Dequeue does not find an unknown bundle", legal, func(s *scriptedHistory) {
			open(s)
			s.dequeueBundle("z", history.NotFound)
			s.dequeueBundle("z", history.Unknown)
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"a Peek returns the bundle after its Dequeue", illegal, func(s *scriptedHistory) {
			open(s)
			s.dequeueDone("x")
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"the id of a dequeued bundle is used again", illegal, func(s *scriptedHistory) {
			open(s)
			s.dequeueDone("x")
			s.sendEvents("A1", "2")
			s.peekShown(newBundle("x", "A1", "2"))
		}},
		{"one of two concurrent Dequeues succeeds", legal, func(s *scriptedHistory) {
			open(s)
			first := s.Dequeue(1, s.nextTick(), "x")
			s.dequeueBundle("x", history.NotFound)
			first(s.nextTick(), history.Done)
		}},
		{"neither of two concurrent Dequeues succeeds", illegal, func(s *scriptedHistory) {
			open(s)
			first := s.Dequeue(1, s.nextTick(), "x")
			s.dequeueBundle("x", history.NotFound)
			first(s.nextTick(), history.NotFound)
		}},
		{"a Peek that began before the Dequeue returns the bundle", legal, func(s *scriptedHistory) {
			open(s)
			first := s.Peek(1, s.nextTick())
			s.dequeueDone("x")
			first(s.nextTick(), history.Returned, newBundle("x", "A1", "1"))
		}},
	})
}
