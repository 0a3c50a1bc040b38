package history_test

import (
	"testing"

	"github.com/messagehub/messagehub/bench/simulate/history"
)

func TestPeek_RepeatsTheOpenBundle(t *testing.T) {
	checkRules(t, history.Options{}, []ruleCase{
		{"the same again, whatever came meanwhile", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.sendEvents("A1", "2")
			s.peekShown(newBundle("x", "A1", "1"))
			s.peekShown(newBundle("x", "A1", "1"), "A")
		}},
		{"longer than before", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.sendEvents("A1", "2")
			s.peekShown(newBundle("x", "A1", "1 2"))
		}},
		{"with another body", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			b := newBundle("x", "A1", "1")
			s.peekShown(b)
			b.Body = "other"
			s.peekShown(b)
		}},
		{"under another id", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.peekShown(newBundle("y", "A1", "1"))
		}},
		{"two open in a group", illegal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "A2"))
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("y", "A2", "2"), "A")
		}},
		{"one open in each group", legal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("y", "B1", "2"), "B")
		}},
		{"two Peeks at once show one bundle", legal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			first := s.Peek(1, s.nextTick())
			s.peekShown(newBundle("x", "A1", "1"))
			first(s.nextTick(), history.Shown, newBundle("x", "A1", "1"))
		}},
		{"two Peeks at once show two", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1 2")
			first := s.Peek(1, s.nextTick())
			s.peekShown(newBundle("x", "A1", "1"))
			first(s.nextTick(), history.Shown, newBundle("y", "A1", "1 2"))
		}},
		{"none while one is open", illegal, func(s *scriptedHistory) {
			s.sendEvents("A1", "1")
			s.peekShown(newBundle("x", "A1", "1"))
			s.peekNone()
		}},
		{"the oldest of two groups", legal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			s.peekShown(newBundle("y", "B1", "2"), "B")
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("y", "B1", "2"))
		}},
		{"the younger of two groups", illegal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			s.peekShown(newBundle("y", "B1", "2"), "B")
			s.peekShown(newBundle("x", "A1", "1"), "A")
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"a new one though one is open", illegal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			s.peekShown(newBundle("y", "B1", "2"), "B")
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"a new one while another is being opened elsewhere", legal, func(s *scriptedHistory) {
			s.sendAll(newEvent("1", "A1"), newEvent("2", "B1"))
			all := s.Peek(3, s.nextTick())
			s.peekShown(newBundle("y", "B1", "2"), "B")
			s.peekShown(newBundle("y", "B1", "2"))
			all(s.nextTick(), history.Shown, newBundle("x", "A1", "1"))
		}},
	})
}

func TestDequeue_TakesEffectOnce(t *testing.T) {
	open := func(s *scriptedHistory) {
		s.sendEvents("A1", "1")
		s.peekShown(newBundle("x", "A1", "1"))
	}
	checkRules(t, history.Options{}, []ruleCase{
		{"the second time it is not found", legal, func(s *scriptedHistory) {
			open(s)
			s.dequeueDone("x")
			s.dequeueBundle("x", history.NotFound)
		}},
		{"done twice", illegal, func(s *scriptedHistory) {
			open(s)
			s.dequeueDone("x")
			s.dequeueDone("x")
		}},
		{"an open bundle that is not found", illegal, func(s *scriptedHistory) {
			open(s)
			s.dequeueBundle("x", history.NotFound)
		}},
		{"a bundle that never was", illegal, func(s *scriptedHistory) {
			open(s)
			s.dequeueDone("z")
		}},
		{"a bundle that never was is not found", legal, func(s *scriptedHistory) {
			open(s)
			s.dequeueBundle("z", history.NotFound)
			s.dequeueBundle("z", history.Unknown)
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"shown again after it", illegal, func(s *scriptedHistory) {
			open(s)
			s.dequeueDone("x")
			s.peekShown(newBundle("x", "A1", "1"))
		}},
		{"its id for another bundle", illegal, func(s *scriptedHistory) {
			open(s)
			s.dequeueDone("x")
			s.sendEvents("A1", "2")
			s.peekShown(newBundle("x", "A1", "2"))
		}},
		{"two at once, and one is done", legal, func(s *scriptedHistory) {
			open(s)
			first := s.Dequeue(1, s.nextTick(), "x")
			s.dequeueBundle("x", history.NotFound)
			first(s.nextTick(), history.Done)
		}},
		{"two at once, and none is done", illegal, func(s *scriptedHistory) {
			open(s)
			first := s.Dequeue(1, s.nextTick(), "x")
			s.dequeueBundle("x", history.NotFound)
			first(s.nextTick(), history.NotFound)
		}},
		{"shown by a Peek that began before", legal, func(s *scriptedHistory) {
			open(s)
			first := s.Peek(1, s.nextTick())
			s.dequeueDone("x")
			first(s.nextTick(), history.Shown, newBundle("x", "A1", "1"))
		}},
	})
}
