package cosmos

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A cabinetIndex is the part of the index that is about one cabinet.
type cabinetIndex struct {
	cabinet domain.CabinetKey
	limit   int // of the memory for filters, in bytes

	last   received // as of the newest head that was observed
	floor  int      // drawers with a smaller ordinal are not retained
	sealed int      // drawers up to this ordinal take no more events
	blocks []block  // that cover the drawers from floor to sealed

	open     openDrawer
	left     openDrawer // the drawer that was open before, if it was not full when it was left
	resident map[blockSegment]*residentFilter
	bytes    int // of resident
	uses     useTime
	loaded   map[int]loadedDrawer // drawers that were read for this Save, by ordinal
}

// A residentFilter is a filter in memory. It covers all of its segment's drawers. That of a
// drawer may be of an older version.
type residentFilter struct {
	set     *fingerprintSet
	hasLost bool   // ids are missing in set that a backup may bring back: it is not merged
	older   filter // if set is nil
	used    useTime
}

// A loadedDrawer has the events of a drawer in the slots below until.
type loadedDrawer struct {
	ids     map[domain.EventID]domain.Digest
	until   int
	isWhole bool // the drawer takes no more
}

// A useTime orders the uses of filters.
type useTime uint64

// Compare orders the earlier use first.
func (t useTime) Compare(u useTime) int { return cmp.Compare(t, u) }

func newCabinetIndex(cabinet domain.CabinetKey, limit int) *cabinetIndex {
	return &cabinetIndex{cabinet: cabinet, limit: limit, floor: 1, resident: make(map[blockSegment]*residentFilter)}
}

// observe takes in what a head says of the cabinet, unless a newer head was observed.
func (cab *cabinetIndex) observe(last received, floor int) {
	sealed := last.Ordinal
	if last.Drawer != "" {
		sealed--
	}
	if sealed < cab.sealed || sealed == cab.sealed && last.Drawer == cab.last.Drawer && last.Fill < cab.last.Fill {
		last, sealed = cab.last, cab.sealed
	}
	isOpen := last.Drawer == cab.open.drawer && last.Ordinal == cab.open.ordinal // a damaged head may change one of them
	if floor <= cab.floor && sealed == cab.sealed && isOpen {
		cab.last = last
		return
	}
	if !isOpen {
		if cab.open.drawer != "" {
			cab.left = cab.open
		}
		cab.open = openDrawer{drawer: last.Drawer, ordinal: last.Ordinal, stored: &storedFilter{}}
	}
	cab.last, cab.sealed, cab.floor = last, sealed, max(floor, cab.floor)
	cab.blocks = blocksBetween(cab.floor, cab.sealed)
	for at := range cab.resident {
		if at.end() <= cab.floor {
			cab.evict(at)
		}
	}
}

// isComplete reports whether all events in the drawer that is being filled are known.
func (cab *cabinetIndex) isComplete() bool {
	return cab.last.Drawer == "" || cab.open.fill >= cab.last.Fill
}

// catchUp reads what is not known of the drawer that is being filled, and in the same query
// the filters for the first of hashes.
func (cab *cabinetIndex) catchUp(ctx context.Context, c *call, hashes []uint64) error {
	if n := cab.last.inPages(); len(cab.blocks) == 0 && costOfPages(n, n) <= maxUnread {
		cab.open.looked = true // there is no filter yet
	}
	if err := cab.fetch(ctx, c, hashes[:cab.fitting(hashes)]); err != nil {
		return err
	}
	if cab.isComplete() {
		return nil
	}
	newest, err := cab.last.decodeTail(cab.cabinet)
	if err != nil {
		return domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cab.cabinet), err)
	}
	read := c.readDrawer(cab.cabinet, slotRange{Drawer: cab.open.drawer, Ordinal: cab.open.ordinal, From: cab.open.fill, To: cab.last.Fill}, newest)
	read.size = pagesOfIndex
	before := cab.open.fill
	for !read.done() {
		events, err := read.next(ctx)
		if err != nil {
			lost, err := read.skipLost(ctx, err)
			if err != nil {
				return err
			}
			cab.open.fill, cab.open.hasLost = lost.To, true
			continue
		}
		for i := range events {
			cab.open.add(events[i].ID, events[i].digest)
		}
	}
	inTail := max(0, cab.last.Fill-max(before, cab.last.inPages()))
	cab.open.unread += costOfPages(read.pagesRead, cab.open.fill-before-inTail) + costOfTail(inTail)
	cab.storeFilter(c.r)
	return nil
}

// storeFilter has the filter of the drawer that is being filled stored, if too much of the
// drawer is not in the stored one.
func (cab *cabinetIndex) storeFilter(r *Repository) {
	if cab.open.unread < maxUnread || cab.open.hasLost {
		return
	}
	cab.open.unread = 0
	r.hints.leaveFilter(cab.cabinet, cab.open.drawerFilter(), cab.open.stored)
}

// add takes in the events of a part that has been committed. If its drawer is new, the one
// before is full. It is sealed now rather than by the next reader. inTail says that the
// events are in the tail.
func (cab *cabinetIndex) add(r *Repository, part *part, events []numbered, inTail bool) {
	last := received{Drawer: part.Drawer, Ordinal: part.Ordinal, Fill: part.end()}
	if part.New {
		before := cab.open
		cab.observe(last, cab.floor)
		if before.drawer != "" && before.ordinal == part.Ordinal-1 {
			f := before.drawerFilter()
			f.sealed = true
			cab.admit(drawerSegment(f.ordinal), &residentFilter{set: f.set, hasLost: before.hasLost})
			if !before.hasLost {
				r.hints.leaveSealed(cab.cabinet, f, before.stored, cab.mergeBehind(f.ordinal), cab.floor)
			}
		}
		cab.open.looked = true // there is no filter yet
	}
	if cab.open.drawer != part.Drawer || cab.open.fill != part.Slot {
		return // something lies between: refresh reads it
	}
	cab.last = last
	if cab.open.misfit != "" { // not before: an old head makes every filter a misfit
		cab.open.stored = &storedFilter{etag: cab.open.misfit}
		cab.open.misfit, cab.open.unread = "", maxUnread
	}
	for _, e := range events {
		cab.open.add(e.ID, e.digest)
	}
	if inTail {
		cab.open.unread += costOfTail(part.Count)
	} else {
		cab.open.unread += costOfPages(1, part.Count)
	}
	if cab.open.fill < r.opts.DrawerCapacity { // else it is stored when the drawer is left, which is soon
		cab.storeFilter(r)
	}
}

// filtersAtOnce is how many filters are read before the first of them is used and may be
// forgotten: 8 MB when they are full.
const filtersAtOnce = 400

// fitting returns how many of hashes need up to filtersAtOnce filters that are not in memory.
func (cab *cabinetIndex) fitting(hashes []uint64) int {
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

// suspects returns the ordinals of drawers that may hold events, by the hash of the event.
func (cab *cabinetIndex) suspects(ctx context.Context, c *call, hashes []uint64) (map[uint64][]int, error) {
	found := make(map[uint64][]int)
	for len(hashes) > 0 {
		some := hashes[:cab.fitting(hashes)]
		hashes = hashes[len(some):]
		if err := cab.fetch(ctx, c, some); err != nil {
			return nil, err
		}
		for _, hash := range some {
			ordinals, ok := cab.ordinals(hash)
			if !ok {
				return nil, client.ErrStale // cannot be: fetch has read them
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

// ordinals returns the ordinals of the drawers that may hold the event with a hash, apart
// from those events whose digests are in memory. It reports false if a filter that this
// needs is not in memory.
func (cab *cabinetIndex) ordinals(hash uint64) ([]int, bool) {
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
		found = cab.open.filter.ordinals(hash, found)
	}
	return slices.DeleteFunc(found, func(ordinal int) bool { return ordinal < cab.floor }), true
}

func (cab *cabinetIndex) ordinalsIn(b block, hash uint64, to []int) ([]int, bool) {
	if f := cab.resident[b.segmentOf(hash)]; f != nil {
		cab.use(f)
		switch {
		case f.set != nil:
			to = f.set.ordinals(hash, to)
		case f.older.mayHoldHash(hash):
			to = append(to, b.first())
		}
		return to, true
	}
	if b.level == 0 {
		return to, false
	}
	for i := range fanOut {
		if child := b.child(i); child.end() > cab.floor {
			var ok bool
			if to, ok = cab.ordinalsIn(child, hash, to); !ok {
				return to, false
			}
		}
	}
	return to, true
}

// use notes that f is in use.
func (cab *cabinetIndex) use(f *residentFilter) {
	cab.uses++
	f.used = cab.uses
}

// collectMissing adds to missing the segments of b, or of the blocks in it, that have to be
// read for a hash. Those in absent are not stored: the filters of their children are used.
func (cab *cabinetIndex) collectMissing(b block, hash uint64, absent, missing map[blockSegment]bool) {
	at := b.segmentOf(hash)
	switch {
	case cab.resident[at] != nil, b.level == 0 && absent[at]:
	case b.level > 0 && (absent[at] || cab.covers(b, hash)):
		for i := range fanOut {
			if child := b.child(i); child.end() > cab.floor {
				cab.collectMissing(child, hash, absent, missing)
			}
		}
	default:
		missing[at] = true
	}
}

// covers reports whether filters of b, or of all blocks in it, are in memory for a hash.
func (cab *cabinetIndex) covers(b block, hash uint64) bool {
	if cab.resident[b.segmentOf(hash)] != nil {
		return true
	}
	if b.level == 0 {
		return false
	}
	for i := range fanOut {
		if child := b.child(i); child.end() > cab.floor && !cab.covers(child, hash) {
			return false
		}
	}
	return true
}

// fetch reads the filters that are needed to answer for hashes, and that of the drawer that
// is being filled if it was not looked for.
func (cab *cabinetIndex) fetch(ctx context.Context, c *call, hashes []uint64) error {
	absent := make(map[blockSegment]bool) // not stored, or at level 0 not of the whole drawer
	short := make(shortFilters)
	for {
		missing := make(map[blockSegment]bool)
		for _, hash := range hashes {
			for _, b := range cab.blocks {
				cab.collectMissing(b, hash, absent, missing)
			}
		}
		open := drawerSegment(cab.open.ordinal)
		if cab.open.drawer != "" && !cab.open.looked {
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
			case at == open && cab.open.drawer != "" && !cab.open.looked:
				cab.open.begin(f, cab.last.Fill)
			case f != nil && (at.level > 0 || f.doc.Sealed):
				cab.admit(at, &residentFilter{set: f.set})
			default:
				absent[at] = true
				if at.level == 0 {
					short[at] = f
				}
			}
		}
	}
	if err := cab.complete(ctx, c, short); err != nil {
		return err
	}
	cab.mergeAbsent(c, absent)
	return nil
}

// shortFilters are the stored filters of drawers that do not cover all of the drawer. A nil
// filter is not stored.
type shortFilters map[blockSegment]*readFilter

// complete makes filters of the drawers in short, in the order of their ordinals. A filter of
// an older version is used as it is.
func (cab *cabinetIndex) complete(ctx context.Context, c *call, short shortFilters) error {
	for len(short) > 0 {
		drawers := slices.SortedFunc(maps.Keys(short), blockSegment.compare)
		limit := len(drawers)
		if limit > drawersPerBundle {
			limit = 0 // few requests rather than few documents
		}
		extents, err := c.extents(ctx, cab.cabinet, cab.last, drawers[0].first(), limit)
		if err != nil {
			return err
		}
		if len(extents) == 0 {
			return client.ErrNotYetVisible
		}
		if err := cab.completeFilters(ctx, c, extents, short); err != nil {
			return err
		}
	}
	return nil
}

// completeFilters makes filters of those drawers of extents that are in short, and removes
// them there.
func (cab *cabinetIndex) completeFilters(ctx context.Context, c *call, extents []extent, short shortFilters) error {
	filters := make([]*residentFilter, len(extents))
	var g errgroup.Group // without a context: those under way when one fails are used by the next attempt
	var failed atomic.Bool
	g.SetLimit(drawersPerBundle)
	for i, e := range extents {
		f, isShort := short[drawerSegment(e.ordinal)]
		if failed.Load() || !isShort {
			continue
		}
		known := openDrawer{drawer: e.drawer, ordinal: e.ordinal, stored: &storedFilter{}}
		known.begin(f, e.limit)
		if cab.left.drawer == e.drawer && cab.left.fill > known.fill {
			known = cab.left
		}
		g.Go(func() (err error) {
			filters[i], err = c.completeFilter(ctx, cab.cabinet, e, &known, f != nil)
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	err := g.Wait()
	for i, f := range filters { // also if one could not be read: the next attempt continues there
		if f != nil {
			cab.admit(drawerSegment(extents[i].ordinal), f)
			delete(short, drawerSegment(extents[i].ordinal))
		}
	}
	return err
}

// completeFilter returns the filter of a sealed drawer of which some slots are known, and
// stores it for the next reader.
func (c *call) completeFilter(ctx context.Context, cabinet domain.CabinetKey, e extent, known *openDrawer, hasFilter bool) (*residentFilter, error) {
	if known.fill < e.limit && !hasFilter {
		older, err := c.readOlderFilter(ctx, e)
		if err != nil {
			return nil, err
		}
		if older != nil {
			return &residentFilter{older: older}, nil
		}
	}
	if known.fill < e.limit {
		ids, hasLost, err := c.readIDs(ctx, cabinet, slotRange{Drawer: e.drawer, Ordinal: e.ordinal, From: known.fill, To: e.limit}, nil) // the head has left the drawer
		if err != nil {
			return nil, err
		}
		known.fold()
		known.ids, known.fill, known.hasLost = ids, e.limit, known.hasLost || hasLost
	}
	f := known.drawerFilter()
	f.sealed = true
	if !known.hasLost {
		c.r.hints.leaveFilter(cabinet, f, known.stored)
	}
	return &residentFilter{set: f.set, hasLost: known.hasLost}, nil
}

// maxMemoryMerge is the highest level of the filters that are merged in memory, which takes
// 0.3 s for 2.5 million events at this level. Those above are merged from what is stored.
const maxMemoryMerge = 4

// mergedBlocks are the filters of blocks that end with the same drawer.
type mergedBlocks struct {
	sets [][]*fingerprintSet // as mergeSets returns them
	next block               // the smallest block that was not merged
}

// mergeBehind merges the filters of the blocks that end with a drawer, as far as they are in
// memory, and keeps the merged ones instead.
func (cab *cabinetIndex) mergeBehind(ordinal int) mergedBlocks {
	var merged mergedBlocks
	b := drawerBlock(ordinal).parent()
	for ; b.end() == ordinal+1 && b.level <= maxMemoryMerge; b = b.parent() {
		var all []*fingerprintSet
		for segment := range b.child(0).segments() {
			var children [fanOut]*fingerprintSet
			for i := range fanOut {
				child := blockSegment{b.child(i), segment}
				if f := cab.resident[child]; f != nil && !f.hasLost {
					children[i] = f.set
				}
				if children[i] == nil && child.end() > cab.floor {
					merged.next = b
					return merged
				}
			}
			sets := mergeSets(b, &children)
			merged.sets, all = append(merged.sets, sets), append(all, sets...)
		}
		for i := range fanOut {
			for segment := range b.child(i).segments() {
				cab.evict(blockSegment{b.child(i), segment})
			}
		}
		for _, set := range all {
			cab.admit(set.blockSegment, &residentFilter{set: set})
		}
	}
	merged.next = b
	return merged
}

// mergeAbsent has filters merged that are not stored, if those of all children are in memory.
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
		for i, child := range at.children() {
			s.child = child.segment
			if f := cab.resident[child]; f != nil && f.set != nil && !f.hasLost {
				sets[i] = f.set
			} else if child.end() > cab.floor {
				whole = false
			}
		}
		if whole && !merged[s] {
			merged[s] = true
			c.r.hints.leaveMerged(cab.cabinet, at.block, &sets)
		}
	}
}

// load returns the events of a drawer, of the one that is being filled those that are known as
// fingerprints only. It reads a drawer once for a Save. But the Save may have begun with an
// older head: what the drawer has since is read as well.
func (cab *cabinetIndex) load(ctx context.Context, c *call, ordinal int) (map[domain.EventID]domain.Digest, error) {
	isOpen := cab.last.Drawer != "" && ordinal == cab.last.Ordinal
	known, ok := cab.loaded[ordinal]
	if ok && (known.isWhole || isOpen && known.until >= cab.open.from) {
		return known.ids, nil
	}
	extents, err := c.extents(ctx, cab.cabinet, cab.last, ordinal, 1)
	if err != nil {
		return nil, err
	}
	newest, err := cab.last.decodeTail(cab.cabinet)
	if err != nil {
		return nil, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cab.cabinet), err)
	}
	if len(extents) == 0 {
		return nil, client.ErrNotYetVisible
	}
	e := extents[0]
	if !e.sealed {
		e.limit = min(cab.open.from, e.limit) // the others are in memory
	}
	ids, _, err := c.readIDs(ctx, cab.cabinet, slotRange{Drawer: e.drawer, Ordinal: ordinal, From: known.until, To: e.limit}, newest)
	if err != nil {
		return nil, err
	}
	maps.Copy(ids, known.ids)
	if cab.loaded == nil {
		cab.loaded = make(map[int]loadedDrawer)
	}
	cab.loaded[ordinal] = loadedDrawer{ids: ids, until: e.limit, isWhole: e.sealed}
	return ids, nil
}

// pagesOfIndex is how many pages the index reads in one request, since it uses all of them:
// 2 MB when they are full.
const pagesOfIndex = 32

// readIDs reads the ids of a run of slots. newest is the tail of the cabinet, which may have
// some of them. hasLost says that some of them are lost.
func (c *call) readIDs(ctx context.Context, cabinet domain.CabinetKey, s slotRange, newest *tail) (ids map[domain.EventID]domain.Digest, hasLost bool, err error) {
	ids = make(map[domain.EventID]domain.Digest, min(s.To-s.From, maxRound))
	read := c.readDrawer(cabinet, s, newest)
	read.size = pagesOfIndex
	for !read.done() {
		events, err := read.next(ctx)
		if err != nil {
			if _, err := read.skipLost(ctx, err); err != nil {
				return nil, false, err
			}
			hasLost = true
			continue
		}
		for i := range events {
			ids[events[i].ID] = events[i].digest
		}
	}
	return ids, hasLost, nil
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

func (cab *cabinetIndex) admit(at blockSegment, f *residentFilter) {
	cab.evict(at)
	cab.use(f)
	cab.resident[at] = f
	cab.bytes += f.size()
	if cab.left.ordinal == at.first() && at.level == 0 {
		cab.left = openDrawer{}
	}
}

func (cab *cabinetIndex) evict(at blockSegment) {
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
		cab.evict(at)
	}
}
