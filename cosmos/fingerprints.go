package cosmos

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// A fingerprint is the upper 42 bits of the hash of an id. The filters of the index of received ids are
// sorted fingerprints rather than Bloom, xor or binary fuse filters, for these reasons:
//
//   - Filters of several drawers can be merged without reading a page. To merge the usual kinds of
//     filters, one needs the ids again, or accepts more false positives after each merge.
//   - A merged filter also tells which drawer may have an id. So after a hit only one drawer is read,
//     however many drawers the filter covers.
//   - A filter is cut into segments by hash, so a Save reads only the segments of its ids.
//   - Sorted fingerprints are as small: 4.1 bytes for each id at each level, where a binary fuse filter
//     takes 4.5 bytes with 32 bits for each fingerprint.
//
// An id that was not received matches one of n received ids with a probability of n/2^42: 2 in ten million
// for a million ids.
const fingerprintBits = 42

// A fingerprintKey is a fingerprint followed, in the lowest bits, by the number of the drawer in its
// block. The number takes fanOutBits for each level of the block. The key is stored in three parts: from
// the top, the segment, the bucket in the segment, and a word of 32 bits.
type fingerprintKey uint64

// A fingerprintSet holds the fingerprints of the events in one segment of a block. It is immutable.
type fingerprintSet struct {
	blockSegment
	starts []uint32 // index in words of the start of each bucket; the last element is len(words)
	words  []uint32 // sorted within a bucket
}

// newFingerprintSet sorts keys and returns them as a set. All keys belong to segment s.
func newFingerprintSet(s blockSegment, keys []fingerprintKey) *fingerprintSet {
	slices.Sort(keys)
	f := &fingerprintSet{blockSegment: s, starts: make([]uint32, s.bucketsPerSegment()+1), words: make([]uint32, len(keys))}
	for i, key := range keys {
		f.starts[s.bucketOf(key)+1]++
		f.words[i] = uint32(key) //nolint:gosec // the lower 32 bits
	}
	for i := 1; i < len(f.starts); i++ {
		f.starts[i] += f.starts[i-1]
	}
	return f
}

// len returns the number of fingerprints.
func (f *fingerprintSet) len() int { return len(f.words) }

// size returns the approximate size of f in memory, in bytes.
func (f *fingerprintSet) size() int { return 160 + 4*(len(f.starts)+len(f.words)) }

// keys returns all keys, in order.
func (f *fingerprintSet) keys() []fingerprintKey {
	keys := make([]fingerprintKey, 0, len(f.words))
	for bucket := range f.bucketsPerSegment() {
		upper := fingerprintKey(f.segment*f.bucketsPerSegment()+bucket) << 32 //nolint:gosec // not negative
		for _, word := range f.words[f.starts[bucket]:f.starts[bucket+1]] {
			keys = append(keys, upper|fingerprintKey(word))
		}
	}
	return keys
}

// appendOrdinals appends to a slice the ordinals of the drawers that may hold an event with this hash.
func (f *fingerprintSet) appendOrdinals(hash uint64, to []int) []int {
	low := f.keyOf(hash, 0)
	bucket, drawers := f.bucketOf(low), uint32(1)<<(fanOutBits*f.level)
	for _, word := range f.words[f.starts[bucket]:f.starts[bucket+1]] {
		if word >= uint32(low) && word-uint32(low) < drawers { //nolint:gosec // the lower 32 bits
			to = append(to, f.firstOrdinal()+int(word-uint32(low))) //nolint:gosec // the lower 32 bits
		}
	}
	return to
}

// keyOf returns the key of an event with this hash in a drawer of b. The drawers of b are numbered from 0.
func (b block) keyOf(hash uint64, drawer int) fingerprintKey {
	return fingerprintKey(hash>>(64-fingerprintBits)<<(fanOutBits*b.level) | uint64(drawer)) //nolint:gosec // not negative
}

// keysOf returns the keys of ids in a block of one drawer.
func keysOf(ids map[domain.EventID]domain.Digest) []fingerprintKey {
	keys := make([]fingerprintKey, 0, len(ids))
	for id := range ids {
		keys = append(keys, block{}.keyOf(hashOf(id), 0))
	}
	return keys
}

// mergeSets returns the sets of a block, one for each segment that the sets of its children cover. A
// nil child is empty.
func mergeSets(b block, children *[fanOut]*fingerprintSet) []*fingerprintSet {
	count, segment := 0, 0
	for _, child := range children {
		if child != nil {
			count, segment = count+child.len(), child.segment
		}
	}
	below := fanOutBits * (b.level - 1) // number of bits of the drawer number in the keys of a child
	first := segment * b.segmentCount() / b.child(0).segmentCount()
	keys := make([][]fingerprintKey, b.segmentCount()/b.child(0).segmentCount())
	for i := range keys {
		keys[i] = make([]fingerprintKey, 0, count/len(keys)+count/(2*len(keys)))
	}
	for i, child := range children {
		if child == nil {
			continue
		}
		for _, key := range child.keys() {
			drawer := i<<below | int(key&(1<<below-1))                       //nolint:gosec // few bits
			moved := key>>below<<(below+fanOutBits) | fingerprintKey(drawer) //nolint:gosec // few bits, not negative
			at := b.segmentOfKey(moved) - first
			keys[at] = append(keys[at], moved)
		}
	}
	sets := make([]*fingerprintSet, len(keys))
	for i := range sets {
		sets[i] = newFingerprintSet(blockSegment{b, first + i}, keys[i])
	}
	return sets
}

// fingerprintsVersion is the first byte of an encoded set. After it come the number of words in each
// bucket as uvarint, the words in 4 bytes each, and a CRC-32C in 4 bytes. The CRC covers all previous
// bytes and the document id of the segment.
const fingerprintsVersion = 1

var errFingerprints = errors.New("the fingerprints of a block of drawers cannot be decoded")

func (f *fingerprintSet) encode() []byte {
	data := make([]byte, 0, 5+2*len(f.starts)+4*len(f.words))
	data = append(data, fingerprintsVersion)
	for i := range f.bucketsPerSegment() {
		data = binary.AppendUvarint(data, uint64(f.starts[i+1]-f.starts[i]))
	}
	for _, word := range f.words {
		data = binary.LittleEndian.AppendUint32(data, word)
	}
	return binary.LittleEndian.AppendUint32(data, f.computeChecksum(data))
}

func (s blockSegment) computeChecksum(data []byte) uint32 {
	return crc32.Update(crc32.Checksum(data, castagnoli), castagnoli, []byte(s.documentID()))
}

// decodeFingerprints decodes the set of segment s.
func decodeFingerprints(s blockSegment, data []byte) (*fingerprintSet, error) {
	end := len(data) - 4
	if end < 1 || data[0] != fingerprintsVersion || s.computeChecksum(data[:end]) != binary.LittleEndian.Uint32(data[end:]) {
		return nil, errFingerprints
	}
	d := decoder{b: data[1:end]}
	f := &fingerprintSet{blockSegment: s, starts: make([]uint32, s.bucketsPerSegment()+1)}
	for i := range s.bucketsPerSegment() {
		n := d.readUvarint()
		if n > uint64(len(d.b)) { // n words cannot fit into the remaining bytes
			return nil, errFingerprints
		}
		f.starts[i+1] = f.starts[i] + uint32(n) //nolint:gosec // few
	}
	if d.failed || len(d.b) != 4*int(f.starts[s.bucketsPerSegment()]) {
		return nil, errFingerprints
	}
	f.words = make([]uint32, len(d.b)/4)
	for i := range f.words {
		f.words[i] = binary.LittleEndian.Uint32(d.b[4*i:])
	}
	return f, nil
}
