package cosmos

import (
	"context"
	"maps"
	"slices"

	"github.com/messagehub/messagehub/cosmos/client"
)

// filtersAtOnce limits the number of filters that are read together and stay in memory until all were
// used: 8 MB if the filters are full.
const filtersAtOnce = 400

// countFitting returns how many of the first hashes together need at most filtersAtOnce filters that are
// not in memory.
func (cab *cabinetIndex) countFitting(hashes []uint64) int {
	missing := make(map[blockSegment]bool)
	for i, hash := range hashes {
		for _, b := range cab.blocks {
			cab.collectMissing(b, hash, nil, missing)
		}
		if len(missing) >= filtersAtOnce {
			return i + 1
		}
	}
	return len(hashes)
}

// findSuspects returns, for each hash, the ordinals of the drawers that may contain the event with this
// hash.
func (cab *cabinetIndex) findSuspects(ctx context.Context, c *call, hashes []uint64) (map[uint64][]int, error) {
	found := make(map[uint64][]int)
	for len(hashes) > 0 {
		some := hashes[:cab.countFitting(hashes)]
		hashes = hashes[len(some):]
		if err := cab.fetchFilters(ctx, c, some); err != nil {
			return nil, err
		}
		for _, hash := range some {
			ordinals, ok := cab.suspectOrdinals(hash)
			if !ok {
				return nil, client.ErrStale // cannot happen, because fetchFilters has read the filters
			}
			if len(ordinals) > 0 {
				found[hash] = ordinals
			}
		}
		if len(hashes) > 0 {
			cab.evictOldest()
		}
	}
	return found, nil
}

// suspectOrdinals returns the ordinals of the drawers that may contain the event with a hash. It ignores
// events whose digests are in memory. It returns false if a needed filter is not in memory.
func (cab *cabinetIndex) suspectOrdinals(hash uint64) ([]int, bool) {
	var found []int
	for _, b := range cab.blocks {
		var ok bool
		if found, ok = cab.ordinalsIn(b, hash, found); !ok {
			return nil, false
		}
	}
	if !cab.isComplete() {
		return nil, false
	}
	if cab.open.filter != nil {
		found = cab.open.filter.appendOrdinals(hash, found)
	}
	return slices.DeleteFunc(found, func(ordinal int) bool { return ordinal < cab.floor }), true
}

func (cab *cabinetIndex) ordinalsIn(b block, hash uint64, to []int) ([]int, bool) {
	if f := cab.resident[b.segmentOf(hash)]; f != nil {
		cab.markUsed(f)
		switch {
		case f.set != nil:
			to = f.set.appendOrdinals(hash, to)
		case f.older.mayHoldHash(hash):
			to = append(to, b.firstOrdinal())
		}
		return to, true
	}
	if b.level == 0 {
		return to, false
	}
	for i := range fanOut {
		if child := b.child(i); child.endOrdinal() > cab.floor {
			var ok bool
			if to, ok = cab.ordinalsIn(child, hash, to); !ok {
				return to, false
			}
		}
	}
	return to, true
}

// collectMissing adds to missing the segments whose filters must be read for a hash. It considers b and
// the blocks inside b. If a segment is in absent, no filter is stored, and the filters of the child
// blocks are used instead.
func (cab *cabinetIndex) collectMissing(b block, hash uint64, absent, missing map[blockSegment]bool) {
	at := b.segmentOf(hash)
	switch {
	case cab.resident[at] != nil, b.level == 0 && absent[at]:
	case b.level > 0 && (absent[at] || cab.hasFilters(b, hash)):
		for i := range fanOut {
			if child := b.child(i); child.endOrdinal() > cab.floor {
				cab.collectMissing(child, hash, absent, missing)
			}
		}
	default:
		missing[at] = true
	}
}

// hasFilters reports whether the filters for a hash are in memory: either the filter of b, or the filters
// of all blocks inside b.
func (cab *cabinetIndex) hasFilters(b block, hash uint64) bool {
	if cab.resident[b.segmentOf(hash)] != nil {
		return true
	}
	if b.level == 0 {
		return false
	}
	for i := range fanOut {
		if child := b.child(i); child.endOrdinal() > cab.floor && !cab.hasFilters(child, hash) {
			return false
		}
	}
	return true
}

// lackingFilters records which filters fetchFilters did not find. If an attempt fails because a drawer is
// not visible yet, the next attempt does not read the filters again.
type lackingFilters struct {
	absent map[blockSegment]bool // segments without a stored filter, and drawers whose stored filter covers only some slots
	short  shortFilters          // drawers in absent, each with its incomplete filter, or nil
}

// fetchFilters reads the filters that are needed for hashes. It also reads the filter of the drawer that
// is being filled, unless it was read before.
func (cab *cabinetIndex) fetchFilters(ctx context.Context, c *call, hashes []uint64) error {
	if cab.lacking.absent == nil {
		cab.lacking = lackingFilters{make(map[blockSegment]bool), make(shortFilters)}
	}
	absent, short := cab.lacking.absent, cab.lacking.short
	for {
		missing := make(map[blockSegment]bool)
		for _, hash := range hashes {
			for _, b := range cab.blocks {
				cab.collectMissing(b, hash, absent, missing)
			}
		}
		open := drawerSegment(cab.open.ordinal)
		if cab.open.drawer != "" && !cab.open.isFilterRead {
			missing[open] = true
		}
		if len(missing) == 0 {
			break
		}
		wanted := slices.SortedFunc(maps.Keys(missing), blockSegment.compare)
		found, err := c.readBlockFilters(ctx, cab.cabinet, wanted)
		if err != nil {
			return err
		}
		for _, at := range wanted {
			f := found[at]
			switch {
			case at == open && cab.open.drawer != "" && !cab.open.isFilterRead:
				cab.open.adoptStored(f, cab.last.Fill, cab.last.inPages())
			case f != nil && (at.level > 0 || f.doc.Sealed):
				cab.admitFilter(at, &residentFilter{set: f.set})
			default:
				absent[at] = true
				if at.level == 0 {
					short[at] = f
				}
			}
		}
	}
	if err := cab.completeShort(ctx, c, short); err != nil {
		return err
	}
	if !c.withoutHints {
		cab.mergeAbsent(c, absent)
	}
	cab.lacking = lackingFilters{}
	return nil
}
