package cosmos

import (
	"encoding/binary"
	"maps"
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// An idSet finds events that exist twice. It stores an eight-byte hash of each id. Two ids with the same
// hash are suspects, which are later compared in full. If the hashes need too much memory, the first pass
// stores only a half, a quarter, … of them. Further passes read the events again to check the remaining
// ids.
type idSet struct {
	memory int // limit in bytes; 0: no limit
	pass   uint64

	mu       sync.Mutex
	passes   uint64
	slots    []uint64 // hash table with open addressing, at most half full; 0 marks a free slot
	used     int
	suspects map[uint64]bool
}

// newIDSet returns the set of the first pass, during which the number of passes is determined.
func newIDSet(memory int) *idSet {
	return &idSet{memory: memory, passes: 1, slots: make([]uint64, 1024), suspects: make(map[uint64]bool)}
}

// nextPass returns the set of the pass after s, or nil if s was the last pass.
func (s *idSet) nextPass() *idSet {
	if s.pass+1 >= s.passes {
		return nil
	}
	return &idSet{pass: s.pass + 1, passes: s.passes, slots: make([]uint64, len(s.slots)), suspects: make(map[uint64]bool)}
}

// fingerprintOf returns the eight-byte hash of an id, which is never 0.
func fingerprintOf(id domain.EventID) uint64 {
	return mixBits(binary.LittleEndian.Uint64(id[:8])^mixBits(binary.LittleEndian.Uint64(id[8:]))) | 1
}

func (s *idSet) add(ids []domain.EventID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		f := fingerprintOf(id)
		if 2*s.used >= len(s.slots) {
			s.grow()
		}
		if s.isMine(f) {
			s.put(f)
		}
	}
}

func (s *idSet) put(f uint64) {
	mask := uint64(len(s.slots) - 1) //nolint:gosec // there are slots
	for at := f >> 1 & mask; ; at = (at + 1) & mask {
		switch s.slots[at] {
		case 0:
			s.slots[at] = f
			s.used++
			return
		case f:
			s.suspects[f] = true
			return
		}
	}
}

func (s *idSet) isMine(f uint64) bool { return f>>32%s.passes == s.pass }

// grow enlarges the table or, if the larger table exceeds the memory, drops half of the ids of this pass.
func (s *idSet) grow() {
	old, size := s.slots, 2*len(s.slots)
	if s.memory > 0 && size*8 > s.memory {
		size = len(old)
		s.passes *= 2
		maps.DeleteFunc(s.suspects, func(f uint64, _ bool) bool { return !s.isMine(f) }) // a later pass finds the dropped suspects again
	}
	s.slots, s.used = make([]uint64, size), 0
	for _, f := range old {
		if f != 0 && s.isMine(f) {
			s.put(f)
		}
	}
}
