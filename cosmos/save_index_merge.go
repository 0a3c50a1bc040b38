package cosmos

import (
	"maps"
	"slices"
)

// maxMemoryMerge is the highest level of the filters that are merged in memory. At this level, a merge of
// 2.5 million events takes 0.3 s. Filters of higher levels are merged from stored filters.
const maxMemoryMerge = 4

// mergedBlocks contains the filters of merged blocks that end with the same drawer.
type mergedBlocks struct {
	sets [][]*fingerprintSet // each is a result of mergeSets
	next block               // smallest block that was not merged
}

// mergeBehind merges the filters of the blocks that end with a drawer. In memory, it replaces the filters
// of the children with the merged filter. It stops at the first block with a child whose filter is not in
// memory.
func (cab *cabinetIndex) mergeBehind(ordinal int) mergedBlocks {
	var merged mergedBlocks
	b := drawerBlock(ordinal).parent()
	for ; b.endOrdinal() == ordinal+1 && b.level <= maxMemoryMerge; b = b.parent() {
		var all []*fingerprintSet
		for segment := range b.child(0).segmentCount() {
			var children [fanOut]*fingerprintSet
			for i := range fanOut {
				child := blockSegment{b.child(i), segment}
				if f := cab.resident[child]; f != nil && !f.hasLost {
					children[i] = f.set
				}
				if children[i] == nil && child.endOrdinal() > cab.floor {
					merged.next = b
					return merged
				}
			}
			sets := mergeSets(b, &children)
			merged.sets, all = append(merged.sets, sets), append(all, sets...)
		}
		for i := range fanOut {
			for segment := range b.child(i).segmentCount() {
				cab.evictFilter(blockSegment{b.child(i), segment})
			}
		}
		for _, set := range all {
			cab.admitFilter(set.blockSegment, &residentFilter{set: set})
		}
	}
	merged.next = b
	return merged
}

// mergeAbsent queues hints that merge and store the filters in absent, if the filters of all children are
// in memory.
func (cab *cabinetIndex) mergeAbsent(c *call, absent map[blockSegment]bool) {
	type step struct {
		block
		child int
	}
	merged := make(map[step]bool)
	for _, at := range slices.SortedFunc(maps.Keys(absent), blockSegment.compare) {
		if at.level == 0 {
			continue
		}
		var sets [fanOut]*fingerprintSet
		whole, s := true, step{block: at.block}
		for i, child := range at.childSegments() {
			s.child = child.segment
			if f := cab.resident[child]; f != nil && f.set != nil && !f.hasLost {
				sets[i] = f.set
			} else if child.endOrdinal() > cab.floor {
				whole = false
			}
		}
		if whole && !merged[s] {
			merged[s] = true
			c.r.hints.addMerged(cab.cabinet, at.block, &sets)
		}
	}
}
