package cosmos

import (
	"encoding/binary"

	"github.com/messagehub/messagehub/domain"
)

// A filter answers whether a sealed drawer may hold an event: "no" is certain,
// "yes" is wrong about once in 50,000 times. It is a Bloom filter in blocks of 512
// bits, so that a look-up touches one cache line, with 32 bits an event: 40 KB
// for a full drawer, to be read once per process instead of the drawer's pages,
// and precise enough that a Save of 10,000 new events hardly ever reads an old
// drawer in vain. (One byte an event would cost a page read per drawer and Save.)
type filter []byte

const (
	filterBlock  = 64 // bytes
	filterProbes = 8
	bitsPerEvent = 32
)

func newFilter(events int) filter {
	blocks := max(1, (events*bitsPerEvent+filterBlock*8-1)/(filterBlock*8))
	return make(filter, blocks*filterBlock)
}

func (f filter) add(id domain.EventID) {
	block, h := f.place(id)
	for range filterProbes {
		block[h%512/8] |= 1 << (h % 8)
		h >>= 7
		h = h*0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019
		h ^= h >> 29
	}
}

func (f filter) mayHold(id domain.EventID) bool {
	if len(f) == 0 {
		return false
	}
	block, h := f.place(id)
	for range filterProbes {
		if block[h%512/8]&(1<<(h%8)) == 0 {
			return false
		}
		h >>= 7
		h = h*0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019
		h ^= h >> 29
	}
	return true
}

// place picks the block of id and a hash for the bits in it.
func (f filter) place(id domain.EventID) ([]byte, uint64) {
	a := mix(binary.LittleEndian.Uint64(id[:8]))
	b := mix(a ^ binary.LittleEndian.Uint64(id[8:]))
	at := b % uint64(len(f)/filterBlock) * filterBlock
	return f[at : at+filterBlock], mix(b + 0x9E3779B97F4A7C15)
}

// mix is the finalizer of SplitMix64: UUIDs that count up are spread as well as
// random ones.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
