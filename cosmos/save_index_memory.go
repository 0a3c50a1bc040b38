package cosmos

import (
	"cmp"
	"maps"
	"slices"
)

// A residentFilter is a filter in memory. It covers all drawers of its segment. The filter of a single
// drawer may have the format of an older version of the hub.
type residentFilter struct {
	set     *fingerprintSet
	hasLost bool   // whether set lacks lost events, which a backup may restore; if so, it is not merged
	older   filter // filter in the format of an older version; used if set is nil
	used    useTime
}

// A useTime is a logical time: the number of previous uses of filters.
type useTime uint64

// Compare orders earlier uses first.
func (t useTime) Compare(u useTime) int { return cmp.Compare(t, u) }

// markUsed records that f was used.
func (cab *cabinetIndex) markUsed(f *residentFilter) {
	cab.uses++
	f.used = cab.uses
}

// size returns an estimate of the memory of cab in bytes.
func (cab *cabinetIndex) size() int {
	return 256 + cab.bytes + cab.open.size() + cab.previous.size()
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
	if cab.previous.ordinal == at.firstOrdinal() && at.level == 0 {
		cab.previous = openDrawer{}
	}
}

func (cab *cabinetIndex) evictFilter(at blockSegment) {
	if f := cab.resident[at]; f != nil {
		cab.bytes -= f.size()
		delete(cab.resident, at)
	}
}

// evictOldest evicts the least recently used filters until the remaining filters need at most cab.limit
// bytes.
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
