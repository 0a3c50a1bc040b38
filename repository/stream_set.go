package repository

import (
	"hash/fnv"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// A StreamSet is a set of streams with a fixed size in bytes. All streams with the same hash share one
// bit, so Has may report a stream that was not added. The zero value is empty.
type StreamSet []byte

// streamSetBytes is the maximum size of a StreamSet, which is small enough for a beat. If a set contains
// a hundred streams, Has wrongly reports about one of forty streams that were not added.
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

// Has reports whether stream, or a stream with the same hash, was added.
func (s StreamSet) Has(stream domain.StreamName) bool {
	index, mask := streamBit(stream)
	return index < len(s) && s[index]&mask != 0
}

// grow extends the set to at least n bytes.
func (s *StreamSet) grow(n int) {
	if missing := n - len(*s); missing > 0 {
		*s = append(slices.Clip(*s), make([]byte, missing)...)
	}
}
