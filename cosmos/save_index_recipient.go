package cosmos

import (
	"cmp"
	"context"
	"slices"
)

// The index uses the filter of the recipient, and stores it again when the stored filter lacks the pages
// of too many cabinets, because a node that does not know the recipient reads each of these cabinets.

// unfilteredLimit limits the number of cabinets with pages that the stored filter of a recipient lacks. A
// Save through a node that does not know the recipient may cost three times as much as usual. With more
// cabinets, the usual cost is higher, so the limit is higher.
func (r *Repository) unfilteredLimit(cabinets int) int {
	return r.opts.MaxUnfilteredCabinets + cabinets/32
}

// filterLimit returns the limit for the size of a recipient's filter in bytes. With few cabinets, writing
// a filter of this size costs as much as 16 requests. With many cabinets, the limit is about the size of
// the head.
func filterLimit(cabinets int) int { return max(32<<10, 256*cabinets) }

// bytesPerUpkeep is the number of bytes of the filter that may be written for each saved part and for
// each cabinet that was read. This write adds about 2 % to the cost.
const bytesPerUpkeep = 1 << 10

// hasPagesBehind reports whether the index lacks pages of the drawer that is being filled.
func (cab *cabinetIndex) hasPagesBehind() bool { return cab.open.fill < cab.last.inPages() }

// hasUnreadPages reports whether the drawer that is being filled has pages, and neither the pages nor
// their filter were read.
func (cab *cabinetIndex) hasUnreadPages() bool {
	return cab.open.drawer != "" && !cab.open.isFilterRead && cab.hasPagesBehind()
}

// adoptFilter reads the filter of the recipient if the pages of more than Options.MaxUnfilteredCabinets
// cabinets are unread. Then it adds the drawers in the filter to the index.
func (x *index) adoptFilter(ctx context.Context, c *call) error {
	unread := make(map[string]*cabinetIndex)
	for _, cab := range x.cabinets {
		if cab.hasUnreadPages() {
			unread[cab.open.drawer] = cab
		}
	}
	if len(unread) <= c.r.opts.MaxUnfilteredCabinets {
		return nil
	}
	drawers, err := x.filter.readFilter(ctx, c, x.recipient)
	if err != nil {
		return err
	}
	if sizeOf(drawers) > filterLimit(len(x.cabinets)) { // this size is possible because most cabinets were removed after the filter was stored
		x.replaceFilter = true
	}
	for i := range drawers {
		cab := unread[drawers[i].drawer]
		if cab == nil {
			continue
		}
		inPages := cab.last.inPages()
		if !cab.open.adoptFilter(&drawers[i], inPages) {
			x.replaceFilter = true
			continue
		}
		// A drawer that is too large for the filter of the recipient has its own filter, which covers
		// more slots.
		cab.open.isFilterRead = inPages-cab.open.fill <= fewSmallPages*max(c.r.opts.TailEvents, 1)
	}
	return nil
}

// adoptFilter uses the part of the recipient's filter for this drawer. limit is the number of slots that
// are in pages according to the head. adoptFilter returns false if the filter covers more slots: either
// the head is stale, or the store has lost a newer head and these slots will be filled with different
// events.
func (o *openDrawer) adoptFilter(d *filteredDrawer, limit int) bool {
	if d.count > limit {
		return false
	}
	if d.count <= o.fill {
		return true
	}
	o.filter, o.from, o.fill = newFingerprintSet(drawerSegment(o.ordinal), d.keys), d.count, d.count
	return true
}

// fingerprintKeys returns the fingerprint keys of all events in o.
func (o *openDrawer) fingerprintKeys() []fingerprintKey {
	keys := keysOf(o.ids)
	if o.filter != nil {
		keys = append(keys, o.filter.keys()...)
	}
	return keys
}

// canBeFiltered reports whether the filter of the recipient may cover the pages of the drawer that is
// being filled. last is the state of the cabinet in a head.
func (cab *cabinetIndex) canBeFiltered(last cabinetState) bool {
	if last.Drawer == "" || cab.open.drawer != last.Drawer || last.inPages() == 0 || cab.open.fill < last.inPages() || cab.open.hasLost {
		return false
	}
	number, ok := idNumber(last.Drawer)
	return ok && idText(number) == last.Drawer // false only if the head is damaged
}

// A filterPart is a drawer that the filter of the recipient may cover.
type filterPart struct {
	open  *openDrawer
	count int // slots below count are in pages
}

// smallestParts returns the parts whose drawers have the fewest events, as many as fit into a filter of
// limit bytes. It also returns the size of that filter.
func smallestParts(all []filterPart, limit int) (fitting []filterPart, size int) {
	slices.SortFunc(all, func(a, b filterPart) int {
		return cmp.Or(cmp.Compare(a.open.fill, b.open.fill), cmp.Compare(a.open.drawer, b.open.drawer))
	})
	for i, part := range all {
		n := sizeOfDrawer(part.open.fill)
		if size+n > limit {
			return all[:i], size
		}
		size += n
	}
	return all, size
}

// countLacking returns the number of parts that the stored filter does not cover.
func (s *storedRecipientFilter) countLacking(parts []filterPart) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, part := range parts {
		if s.counts[part.open.drawer] < part.count {
			n++
		}
	}
	return n
}

// storeFilters queues hints that store the filters of drawers and the filter of the recipient, if the
// stored filters lack too many pages. h is the head that a Save has just written. For some cabinets, the
// index may contain only the state of an older head.
func (x *index) storeFilters(r *Repository, h *head) {
	for name, last := range h.Cabinets {
		// The filter of a full drawer is stored when the next drawer begins.
		if cab := x.cabinets[name]; cab != nil && last.Fill < r.opts.DrawerCapacity {
			cab.storeFilter(r, last)
		}
	}
	x.storeFilter(r, h)
}

// storeFilter queues a hint that stores the filter of the recipient, if the stored filter lacks the pages
// of too many cabinets.
func (x *index) storeFilter(r *Repository, h *head) {
	var parts []filterPart
	for name, last := range h.Cabinets {
		if cab := x.cabinets[name]; cab != nil && cab.canBeFiltered(last) {
			parts = append(parts, filterPart{&cab.open, last.inPages()})
		}
	}
	limit := r.unfilteredLimit(len(h.Cabinets))
	if x.replaceFilter {
		limit = -1
	}
	if x.filter.countLacking(parts) <= limit {
		return
	}
	fitting, size := smallestParts(parts, filterLimit(len(h.Cabinets)))
	if x.filter.countLacking(fitting) <= limit || size > x.upkeep*bytesPerUpkeep {
		return
	}
	x.upkeep, x.replaceFilter = 0, false
	drawers := make([]filteredDrawer, len(fitting))
	for i, part := range fitting {
		drawers[i] = filteredDrawer{drawer: part.open.drawer, count: part.count, keys: part.open.fingerprintKeys()}
	}
	r.hints.addRecipientFilter(x.recipient, drawers, x.filter)
}
