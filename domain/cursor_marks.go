package domain

import (
	"slices"
	"time"
)

// A Mark records the position that a cursor had at one time.
type Mark struct {
	At      time.Time
	Numbers []int64 // for each priority, the number of the next entry to take; 0: no position in this priority
}

// MaxMarks is the maximum number of marks in a Standing, whose stored document must be small.
const MaxMarks = 8

// markInterval is the minimum time between two marks. The last mark may be closer to its
// predecessor.
const markInterval = time.Second

// Mark records the current position if the owner keeps marks. The newest mark is always from the
// last call of Mark. Older marks are further apart than newer ones.
func (c *Cursor) Mark(now time.Time) {
	if !c.owner.KeepsMarks {
		return
	}
	s := &c.standing
	m := Mark{At: now}
	for _, p := range s.At {
		m.Numbers = append(m.Numbers, make([]int64, p.Priority+1-len(m.Numbers))...)
		m.Numbers[p.Priority] = p.Number
	}
	s.Marks = slices.Clone(s.Marks)
	n := len(s.Marks)
	if n >= 2 && s.Marks[n-1].At.Sub(s.Marks[n-2].At) < markInterval {
		s.Marks[n-1] = m
		return
	}
	s.Marks = append(s.Marks, m)
	if len(s.Marks) > MaxMarks {
		i := s.redundantMark(now)
		s.Marks = slices.Delete(s.Marks, i, i+1)
	}
}

// redundantMark returns the index of the mark to drop: the one whose neighbours are closest to each
// other, relative to their age. It never drops the first mark or the last two.
func (s *Standing) redundantMark(now time.Time) int {
	least, index := 0.0, 1
	for i := 1; i < len(s.Marks)-2; i++ {
		gap, age := s.Marks[i+1].At.Sub(s.Marks[i-1].At), now.Sub(s.Marks[i-1].At)
		if ratio := float64(gap) / float64(max(age, 1)); i == 1 || ratio < least {
			least, index = ratio, i
		}
	}
	return index
}

// NumberAt returns a lower limit for the position that the cursor had at a time: all entries of the
// priority with lower numbers had been taken. It uses the last mark at or before the time, so more
// entries may have been taken. It returns 0 if there is no such mark.
func (s *Standing) NumberAt(priority int, at time.Time) int64 {
	for _, m := range slices.Backward(s.Marks) {
		if !m.At.After(at) {
			if priority < len(m.Numbers) {
				return m.Numbers[priority]
			}
			return 0
		}
	}
	return 0
}
