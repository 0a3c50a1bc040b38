package domain

import "math/bits"

// A PrioritySet is a set of stream priorities.
type PrioritySet uint16

// Add adds a priority to s.
func (s *PrioritySet) Add(priority int) { *s |= 1 << priority }

// Remove removes a priority from s.
func (s *PrioritySet) Remove(priority int) { *s &^= 1 << priority }

// Has reports whether s contains the given priority.
func (s PrioritySet) Has(priority int) bool { return s&(1<<priority) != 0 }

// IsEmpty reports whether s contains no priority.
func (s PrioritySet) IsEmpty() bool { return s == 0 }

// HasSeveral reports whether s contains more than one priority.
func (s PrioritySet) HasSeveral() bool { return s&(s-1) != 0 }

// Highest returns the highest priority of s, which must not be empty.
func (s PrioritySet) Highest() int { return bits.Len16(uint16(s)) - 1 }

// Lowest returns the lowest priority of s, which must not be empty.
func (s PrioritySet) Lowest() int { return bits.TrailingZeros16(uint16(s)) }

// A PriorityTurn selects the next of the waiting priorities. Seven of eight picks select the
// highest priority, and each eighth pick the lowest one, so that it is not delayed forever. If
// priorities between these two wait, each eighth pick of the lowest one selects one of them
// instead, in rotation. The zero value is ready for use.
type PriorityTurn struct{ picks uint }

const (
	lowestEvery = 8
	middleEvery = 8 * lowestEvery
)

// Next returns the priority to pick next. waiting contains the priorities to choose from, and must
// not be empty.
func (t *PriorityTurn) Next(waiting PrioritySet) int {
	if !waiting.HasSeveral() || t.picks%lowestEvery != lowestEvery-1 {
		return waiting.Highest()
	}
	lowest := waiting.Lowest()
	if t.picks%middleEvery != middleEvery-1 {
		return lowest
	}
	middle := waiting
	middle.Remove(waiting.Highest())
	middle.Remove(lowest)
	if middle.IsEmpty() {
		return lowest
	}
	first := t.picks / middleEvery % Priorities
	if rest := middle >> first << first; !rest.IsEmpty() {
		return rest.Lowest()
	}
	return middle.Lowest()
}

// Pick records that a priority was picked.
func (t *PriorityTurn) Pick() { t.picks++ }
