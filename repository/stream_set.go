package repository

import (
	"hash/fnv"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// A StreamSet is a set of streams of a fixed size. It has one bit for all streams with the same hash,
// so it may seem to have streams that were not added. The zero value is empty.
type StreamSet []byte

// streamSetBytes is small enough for a beat. If a hundred streams were added, one of forty others seems
// to be in the set.
const streamSetBytes = 512

func streamBit(stream domain.StreamName) (index int, mask byte) {
	h := fnv.New32a()
	h.Write([]byte(stream.String()))
	bit := h.Sum32() % (8 * streamSetBytes)
	return int(bit / 8), 1 << (bit % 8)
}

// Add adds a stream.
func (s *StreamSet) Add(stream domain.StreamName) {
	index, mask := streamBit(stream)
	s.grow(index + 1)
	(*s)[index] |= mask
}

// AddAll adds the streams of another set.
func (s *StreamSet) AddAll(other StreamSet) {
	s.grow(len(other))
	for i, b := range other {
		(*s)[i] |= b
	}
}

// Has reports whether a stream was added, or one with the same hash.
func (s StreamSet) Has(stream domain.StreamName) bool {
	index, mask := streamBit(stream)
	return index < len(s) && s[index]&mask != 0
}

// grow makes room for n bytes.
func (s *StreamSet) grow(n int) {
	if missing := n - len(*s); missing > 0 {
		*s = append(slices.Clip(*s), make([]byte, missing)...)
	}
}
