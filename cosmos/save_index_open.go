package cosmos

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/domain"
)

// An openDrawer is the part of an index for the drawer that is being filled. It covers the events in the
// slots below fill. Events in slots below from are known only as fingerprints, either from a stored
// filter or to save memory. Events in later slots are known with their digests.
type openDrawer struct {
	drawer       string // empty if no drawer is being filled
	ordinal      int
	isFilterRead bool // whether the stored filter was read or does not exist
	fill         int
	hasLost      bool // whether events with unknown ids are lost, so that the filter must not be stored
	from         int
	filter       *fingerprintSet // nil if from is 0
	ids          map[domain.EventID]domain.Digest
	stored       *storedFilter
	misfit       azcore.ETag // etag of a stored filter that must be replaced
	unread       int         // result of costOfPages for the events that the stored filter does not cover; small Saves count more
}

// maxUnread limits the pages that the stored filter of a drawer does not cover: sixteen pages of a few
// events each, or five full pages. A node that does not know the recipient reads the filter and these
// pages. With a lower limit, such a node reads less, but Saves replace the filter more often, at 21 RU
// for a half-full drawer.
const maxUnread = 16 * costOfPage

// costOfPages returns the cost of reading pages, in units of one event. A page costs as much as 400
// events, which fill a third of a page.
func costOfPages(pages, events int) int { return pages*costOfPage + events }

const costOfPage = 400

// costOfTail returns the cost of reading the events of a tail after they were flushed to pages of about
// 24 events.
func costOfTail(events int) int { return costOfPages(0, events) + events*costOfPage/24 }

// A small Save costs a third of a large one. So through a node that does not know the recipient, it may
// read a third as many pages. To reach the limit after a third of the pages, each small Save counts as
// three.
const (
	smallSaves    = 3
	costOfSmaller = (smallSaves - 1) * (1 + costOfPage/24) // added to unread for each small Save
	fewSmallPages = maxUnread / costOfPage / smallSaves
)

// adoptStored uses f, the stored filter of the drawer or nil. limit is the fill of the drawer according
// to a head or the drawer. A filter that covers slots from limit upwards is not used: either the head is
// stale, or a failover has lost a newer head and these slots will be filled with different events. Slots
// from inPages upwards are in a tail. Older versions store filters that cover slots of a tail; such a
// filter is replaced.
func (o *openDrawer) adoptStored(f *loadedFilter, limit, inPages int) {
	o.isFilterRead = true
	switch {
	case f == nil:
	case f.doc.Drawer != o.drawer || f.doc.Count < 0 || f.doc.Count > limit:
		o.misfit = f.doc.ETag
	default:
		if f.doc.Count > inPages {
			o.misfit = f.doc.ETag
		}
		if covered := min(f.doc.Count, inPages); covered > o.fill {
			o.filter, o.from, o.fill = f.set, covered, covered
		}
		o.stored.etag, o.stored.count, o.stored.sealed = f.doc.ETag, f.doc.Count, f.doc.Sealed
	}
}

// add adds an event in the next slot.
func (o *openDrawer) add(id domain.EventID, digest domain.Digest) {
	if o.ids == nil {
		o.ids = make(map[domain.EventID]domain.Digest)
	}
	o.ids[id] = digest
	o.fill++
}

// drawerFilter returns a filter of all events in o.
func (o *openDrawer) drawerFilter() *drawerFilter {
	set := o.filter
	if len(o.ids) > 0 || set == nil {
		keys := keysOf(o.ids)
		if set != nil {
			keys = append(keys, set.keys()...)
		}
		set = newFingerprintSet(drawerSegment(o.ordinal), keys)
	}
	return &drawerFilter{drawer: o.drawer, ordinal: o.ordinal, count: o.fill, set: set}
}

// foldIDs replaces the ids and digests in o with fingerprints.
func (o *openDrawer) foldIDs() {
	if len(o.ids) > 0 {
		o.filter, o.from, o.ids = o.drawerFilter().set, o.fill, nil
	}
}

// size returns an estimate of the memory of o in bytes.
func (o *openDrawer) size() int {
	size := 80 * len(o.ids)
	if o.filter != nil {
		size += o.filter.size()
	}
	return size
}
