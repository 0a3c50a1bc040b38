package cosmos

import (
	"cmp"
	"fmt"
	"iter"
)

// A block covers fanOut^level consecutive ordinals of the drawers of a cabinet. A block of level 0 is one
// drawer; a block of a higher level has fanOut children. The ordinals alone determine the blocks of a
// cabinet. So a node that knows the head knows the ids of all filters that it needs.
type block struct {
	level  int
	number int // position among the blocks of the level, counted from 0
}

const (
	fanOutBits = 2
	fanOut     = 1 << fanOutBits
	// maxBlockLevel is the highest level: a block of this level has 65,536 drawers, and a larger
	// cabinet has several such blocks.
	maxBlockLevel = 8
)

// firstOrdinal returns the ordinal of the first drawer of b.
func (b block) firstOrdinal() int { return b.number<<(fanOutBits*b.level) + 1 }

// endOrdinal returns the ordinal after the last drawer of b.
func (b block) endOrdinal() int { return (b.number+1)<<(fanOutBits*b.level) + 1 }

func (b block) parent() block     { return block{b.level + 1, b.number >> fanOutBits} }
func (b block) child(i int) block { return block{b.level - 1, b.number<<fanOutBits | i} }

// drawerBlock returns the block of one drawer.
func drawerBlock(ordinal int) block { return block{0, ordinal - 1} }

// drawerSegment returns the segment of a drawer. A block of one drawer has only one segment.
func drawerSegment(ordinal int) blockSegment { return blockSegment{drawerBlock(ordinal), 0} }

// blocksBetween returns the largest blocks that cover the drawers from the ordinal floor to the ordinal
// last, in order: at most fanOut-1 blocks of each level below the highest. The first block may begin
// below floor.
func blocksBetween(floor, last int) []block {
	var blocks []block
	done := 0 // ordinals up to this one are covered
	for level := maxBlockLevel; level >= 0; level-- {
		size := 1 << (fanOutBits * level)
		for ; last-done >= size; done += size {
			if b := (block{level, done / size}); b.endOrdinal() > floor {
				blocks = append(blocks, b)
			}
		}
	}
	return blocks
}

// A blockSegment covers the events of a block with hashes in one range. The ranges of a block's segments
// have equal length. Each segment has its own document, with about 5,000 events when the drawers hold
// 10,000.
type blockSegment struct {
	block
	segment int
}

// segmentCount returns the number of segments of b.
func (b block) segmentCount() int {
	if b.level == 0 {
		return 1 // one segment, because a drawer's filter is replaced as a whole while the drawer fills
	}
	return 2 << (fanOutBits * b.level)
}

// bucketsPerSegment returns the number of buckets in a segment of b. A bucket has about ten events when
// the drawers hold 10,000.
func (b block) bucketsPerSegment() int { return b.allBuckets() / b.segmentCount() }

// allBuckets returns the number of buckets of b. The upper bits of a key, above the 32 bits of its word,
// select the bucket.
func (b block) allBuckets() int { return 1 << (fingerprintBits - 32 + fanOutBits*b.level) }

func (b block) bucketOf(key fingerprintKey) int {
	return int(key>>32) & (b.bucketsPerSegment() - 1)
}

func (b block) segmentOfKey(key fingerprintKey) int {
	return int(key>>32) / b.bucketsPerSegment()
}

// segmentOf returns the segment of b whose range contains a hash.
func (b block) segmentOf(hash uint64) blockSegment {
	return blockSegment{b, b.segmentOfKey(b.keyOf(hash, 0))}
}

// childSegments returns the segments from which s is merged: one segment of each child block.
func (s blockSegment) childSegments() iter.Seq2[int, blockSegment] {
	return func(yield func(int, blockSegment) bool) {
		for i := range fanOut {
			child := s.child(i)
			if !yield(i, blockSegment{child, s.segment * child.segmentCount() / s.segmentCount()}) {
				return
			}
		}
	}
}

func (s blockSegment) documentID() string {
	return fmt.Sprintf("%s%d-%05d-%05d", blockFilterPrefix, s.level, s.number, s.segment)
}

const blockFilterPrefix = "filter-"

// compare sorts by level, the highest first, and within a level by position.
func (s blockSegment) compare(o blockSegment) int {
	return cmp.Or(cmp.Compare(o.level, s.level), cmp.Compare(s.number, o.number), cmp.Compare(s.segment, o.segment))
}
