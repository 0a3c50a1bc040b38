package history_test

import (
	"testing"

	"github.com/messagehub/messagehub/bench/simulate/history"
)

func TestPeekRepeatsTheOneOpenBundle(t *testing.T) {
	check(t, history.Options{}, []rule{
		{"the same again, whatever came meanwhile", legal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1"))
			s.send("A1", "2")
			s.shows(bundle("x", "A1", "1"))
			s.shows(bundle("x", "A1", "1"), "A")
		}},
		{"longer than before", illegal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1"))
			s.send("A1", "2")
			s.shows(bundle("x", "A1", "1 2"))
		}},
		{"with another body", illegal, func(s *tale) {
			s.send("A1", "1")
			b := bundle("x", "A1", "1")
			s.shows(b)
			b.Body = "other"
			s.shows(b)
		}},
		{"under another id", illegal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1"))
			s.shows(bundle("y", "A1", "1"))
		}},
		{"two open in a group", illegal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "A2"))
			s.shows(bundle("x", "A1", "1"), "A")
			s.shows(bundle("y", "A2", "2"), "A")
		}},
		{"one open in each group", legal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "B1"))
			s.shows(bundle("x", "A1", "1"), "A")
			s.shows(bundle("y", "B1", "2"), "B")
		}},
		{"two Peeks at once show one bundle", legal, func(s *tale) {
			s.send("A1", "1")
			first := s.Peek(1, s.tick())
			s.shows(bundle("x", "A1", "1"))
			first(s.tick(), history.Shown, bundle("x", "A1", "1"))
		}},
		{"two Peeks at once show two", illegal, func(s *tale) {
			s.send("A1", "1 2")
			first := s.Peek(1, s.tick())
			s.shows(bundle("x", "A1", "1"))
			first(s.tick(), history.Shown, bundle("y", "A1", "1 2"))
		}},
		{"none while one is open", illegal, func(s *tale) {
			s.send("A1", "1")
			s.shows(bundle("x", "A1", "1"))
			s.none()
		}},
		{"the oldest of two groups", legal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "B1"))
			s.shows(bundle("y", "B1", "2"), "B")
			s.shows(bundle("x", "A1", "1"), "A")
			s.shows(bundle("y", "B1", "2"))
		}},
		{"the younger of two groups", illegal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "B1"))
			s.shows(bundle("y", "B1", "2"), "B")
			s.shows(bundle("x", "A1", "1"), "A")
			s.shows(bundle("x", "A1", "1"))
		}},
		{"a new one though one is open", illegal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "B1"))
			s.shows(bundle("y", "B1", "2"), "B")
			s.shows(bundle("x", "A1", "1"))
		}},
		{"a new one while another is being opened elsewhere", legal, func(s *tale) {
			s.sendAll(event("1", "A1"), event("2", "B1"))
			all := s.Peek(3, s.tick())
			s.shows(bundle("y", "B1", "2"), "B")
			s.shows(bundle("y", "B1", "2"))
			all(s.tick(), history.Shown, bundle("x", "A1", "1"))
		}},
	})
}

func TestADequeueTakesEffectOnce(t *testing.T) {
	open := func(s *tale) {
		s.send("A1", "1")
		s.shows(bundle("x", "A1", "1"))
	}
	check(t, history.Options{}, []rule{
		{"the second time it is not found", legal, func(s *tale) {
			open(s)
			s.done("x")
			s.dequeue("x", history.NotFound)
		}},
		{"done twice", illegal, func(s *tale) {
			open(s)
			s.done("x")
			s.done("x")
		}},
		{"an open bundle that is not found", illegal, func(s *tale) {
			open(s)
			s.dequeue("x", history.NotFound)
		}},
		{"a bundle that never was", illegal, func(s *tale) {
			open(s)
			s.done("z")
		}},
		{"a bundle that never was is not found", legal, func(s *tale) {
			open(s)
			s.dequeue("z", history.NotFound)
			s.dequeue("z", history.Unknown)
			s.shows(bundle("x", "A1", "1"))
		}},
		{"shown again after it", illegal, func(s *tale) {
			open(s)
			s.done("x")
			s.shows(bundle("x", "A1", "1"))
		}},
		{"its id for another bundle", illegal, func(s *tale) {
			open(s)
			s.done("x")
			s.send("A1", "2")
			s.shows(bundle("x", "A1", "2"))
		}},
		{"two at once, and one is done", legal, func(s *tale) {
			open(s)
			first := s.Dequeue(1, s.tick(), "x")
			s.dequeue("x", history.NotFound)
			first(s.tick(), history.Done)
		}},
		{"two at once, and none is done", illegal, func(s *tale) {
			open(s)
			first := s.Dequeue(1, s.tick(), "x")
			s.dequeue("x", history.NotFound)
			first(s.tick(), history.NotFound)
		}},
		{"shown by a Peek that began before", legal, func(s *tale) {
			open(s)
			first := s.Peek(1, s.tick())
			s.done("x")
			first(s.tick(), history.Shown, bundle("x", "A1", "1"))
		}},
	})
}
