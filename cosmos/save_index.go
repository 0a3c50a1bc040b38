package cosmos

import (
	"context"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
)

// An index determines which events a recipient has received. The pages are the authoritative record. The
// index caches the data that a Save is likely to need: the ids in the last drawer of each cabinet, and
// filters of the earlier drawers (see block_filter.go). For the ids of a Save, it reads the missing data.
// It evicts the least recently used data.
//
// The index contains only committed events, so an id in the index was certainly received. The method
// refresh adds the events up to a head.
//
// Only the caller that leads the writer may use the index.
type index struct {
	recipient domain.ActorID
	cabinets  map[cabinetName]*cabinetIndex
	limit     int // limit for the memory of the index, in bytes
	removed   int // RemovedOrdinal of the head; new cabinets begin after this ordinal

	filter        *storedRecipientFilter
	replaceFilter bool // whether the stored filter of the recipient covers slots that no head contains
	upkeep        int  // number of saved parts and of cabinet reads since filter was stored
}

func newIndex(recipient domain.ActorID, limit int) *index {
	return &index{recipient: recipient, cabinets: make(map[cabinetName]*cabinetIndex), limit: limit, filter: &storedRecipientFilter{}}
}

// findCabinet returns the index of a cabinet. If it is missing, findCabinet adds an empty one.
func (x *index) findCabinet(name cabinetName) (*cabinetIndex, error) {
	cab := x.cabinets[name]
	if cab == nil {
		cabinet, err := cabinetOf(x.recipient, name)
		if err != nil {
			return nil, err
		}
		cab = newCabinetIndex(cabinet, x.limit)
		x.cabinets[name] = cab
	}
	return cab, nil
}

// refresh reads the events of h that the index lacks: all events in the drawers that are being filled. Of
// earlier drawers, it reads only the filters that are needed for ids.
func (x *index) refresh(ctx context.Context, c *call, h *head, ids []domain.EventID) error {
	maps.DeleteFunc(x.cabinets, func(name cabinetName, _ *cabinetIndex) bool { // removed cabinets
		_, ok := h.Cabinets[name]
		return !ok
	})
	x.removed = h.RemovedOrdinal
	hashes := hashesOf(ids)
	for name, last := range h.Cabinets {
		cab, err := x.findCabinet(name)
		if err != nil {
			return err
		}
		cab.observe(last, h.cabinetFloor(name))
	}
	if err := x.adoptFilter(ctx, c); err != nil {
		return err
	}
	var behind []*cabinetIndex
	for _, cab := range x.cabinets {
		if cab.hasPagesBehind() {
			x.upkeep++
		}
		if !cab.isComplete() || len(cab.blocks) > 0 {
			behind = append(behind, cab)
		}
	}
	g, ctx := errgroup.WithContext(ctx) // a failure cancels the remaining reads
	g.SetLimit(drawersPerBundle)
	for _, cab := range behind {
		g.Go(func() error { return cab.catchUp(ctx, c, hashes) })
	}
	return g.Wait()
}

// find returns the digests of the received events with the given ids, as of the last refresh. It reads
// the drawers that may contain these events.
func (x *index) find(ctx context.Context, c *call, ids []domain.EventID) (map[domain.EventID]domain.Digest, error) {
	found := make(map[domain.EventID]domain.Digest)
	var unknown []domain.EventID
	for _, id := range ids {
		if digest, ok := x.findInMemory(id); ok {
			found[id] = digest
		} else {
			unknown = append(unknown, id)
		}
	}
	hashes := hashesOf(unknown)
	suspects := make([]map[uint64][]int, len(x.cabinets))
	var all []*cabinetIndex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(drawersPerBundle)
	for _, cab := range x.cabinets {
		i := len(all)
		all = append(all, cab)
		g.Go(func() (err error) {
			suspects[i], err = cab.findSuspects(gctx, c, hashes)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, cab := range all {
		if len(suspects[i]) == 0 {
			continue
		}
		for _, id := range unknown {
			for _, ordinal := range suspects[i][hashOf(id)] {
				drawer, err := cab.loadDrawer(ctx, c, ordinal)
				if err != nil {
					return nil, err
				}
				if digest, ok := drawer[id]; ok {
					found[id] = digest
				}
			}
		}
	}
	return found, nil
}

// findInMemory returns the digest of an event if it is in memory.
func (x *index) findInMemory(id domain.EventID) (domain.Digest, bool) {
	for _, cab := range x.cabinets {
		if digest, ok := cab.open.ids[id]; ok {
			return digest, true
		}
	}
	return domain.Digest{}, false
}

// errNotRecalled reports that only a request can determine whether an event was received.
var errNotRecalled = errors.New("the event may be in a drawer that is not in memory")

// lookUpCached is a digestLookup that sends no request. It returns errNotRecalled if a request is needed.
func (x *index) lookUpCached(id domain.EventID) (domain.Digest, bool, error) {
	if digest, ok := x.findInMemory(id); ok {
		return digest, true, nil
	}
	hash := hashOf(id)
	for _, cab := range x.cabinets {
		if ordinals, ok := cab.suspectOrdinals(hash); !ok || len(ordinals) > 0 {
			return domain.Digest{}, false, errNotRecalled
		}
	}
	return domain.Digest{}, false, nil
}

// endSave releases the drawers that were read for one Save.
func (x *index) endSave() {
	for _, cab := range x.cabinets {
		cab.loaded, cab.lacking = nil, lackingFilters{}
	}
}

// add adds the events of a committed plan to the index. inTail states that the events are in tails.
func (x *index) add(r *Repository, p *savePlan, inTail bool) {
	x.upkeep += len(p.intent.Parts)
	for i := range p.intent.Parts {
		part := &p.intent.Parts[i]
		isKnown := x.cabinets[part.Cabinet] != nil
		cab, err := x.findCabinet(part.Cabinet)
		if err != nil {
			continue // cannot happen, because the name was created by nameOf
		}
		if !isKnown {
			cab.floor = x.removed + 1 // the cabinet is new
		}
		cab.add(r, part, p.events[i], inTail)
	}
}

// size returns an estimate of the memory of the index in bytes.
func (x *index) size() int {
	size := 2500 + x.filter.size() // an index with one cabinet, its writer and the writer's head
	for _, cab := range x.cabinets {
		size += cab.size()
	}
	return size
}

// shrink evicts parts of the index until its size is within limit, or nothing can be evicted. It first
// evicts the least recently used filters. Then it replaces the digests of the events in the drawers that
// are being filled with fingerprints, which need a twentieth of the memory.
func (x *index) shrink(limit int) {
	size := x.size()
	if size <= limit {
		return
	}
	type resident struct {
		cab *cabinetIndex
		at  blockSegment
		*residentFilter
	}
	var all []resident
	for _, cab := range x.cabinets {
		for at, f := range cab.resident {
			all = append(all, resident{cab, at, f})
		}
	}
	slices.SortFunc(all, func(a, b resident) int { return a.used.Compare(b.used) })
	for _, f := range all {
		if size <= limit {
			return
		}
		size -= f.size()
		f.cab.evictFilter(f.at)
	}
	for _, cab := range x.cabinets {
		if size <= limit {
			return
		}
		size -= cab.size()
		cab.open.foldIDs()
		size += cab.size()
	}
}

// hashesOf returns the hash of each id, in the same order.
func hashesOf(ids []domain.EventID) []uint64 {
	hashes := make([]uint64, len(ids))
	for i, id := range ids {
		hashes[i] = hashOf(id)
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}
