package cosmos

import (
	"cmp"
	"maps"
	"slices"
)

// A residentFilter is a filter in memory. It covers all of its segment's drawers. That of a
// drawer may be of an older version.
type residentFilter struct {
	set     *fingerprintSet
	hasLost bool   // ids are missing in set that a backup may bring back: it is not merged
	older   filter // if set is nil
	used    useTime
}

// A useTime orders the uses of filters.
type useTime uint64

// Compare orders the earlier use first.
func (t useTime) Compare(u useTime) int { return cmp.Compare(t, u) }

// markUsed notes that f is in use.
func (cab *cabinetIndex) markUsed(f *residentFilter) {
	cab.uses++
	f.used = cab.uses
}

// size estimates the memory that cab takes, in bytes.
func (cab *cabinetIndex) size() int {
	return 256 + cab.bytes + cab.open.size() + cab.left.size()
}

func (f *residentFilter) size() int {
	if f.set != nil {
		return 80 + f.set.size()
	}
	return 80 + len(f.older)
}

func (cab *cabinetIndex) admitFilter(at blockSegment, f *residentFilter) {
	cab.evictFilter(at)
	cab.markUsed(f)
	cab.resident[at] = f
	cab.bytes += f.size()
	if cab.left.ordinal == at.firstOrdinal() && at.level == 0 {
		cab.left = openDrawer{}
	}
}

func (cab *cabinetIndex) evictFilter(at blockSegment) {
	if f := cab.resident[at]; f != nil {
		cab.bytes -= f.size()
		delete(cab.resident, at)
	}
}

// evictOldest forgets the filters that were not used for longest, until the others take up
// to limit bytes.
func (cab *cabinetIndex) evictOldest() {
	if cab.bytes <= cab.limit {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(cab.resident), func(a, b blockSegment) int {
		return cab.resident[a].used.Compare(cab.resident[b].used)
	})
	for _, at := range oldest {
		if cab.bytes <= cab.limit {
			return
		}
		cab.evictFilter(at)
	}
}
