package cosmos

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/domain"
)

// An openDrawer is what the index knows of the drawer that a cabinet is filling: its events in the
// slots below fill. Events below from are known only as fingerprints, which another node has stored or
// this one keeps to save memory; later ones with their digests.
type openDrawer struct {
	drawer  string // "": no drawer is open
	ordinal int
	looked  bool // the stored filter was read, or found missing
	fill    int
	hasLost bool // some of the events are lost, and their ids are unknown: the filter is not stored
	from    int
	filter  *fingerprintSet // nil if from is 0
	ids     map[domain.EventID]domain.Digest
	stored  *storedFilter
	misfit  azcore.ETag // etag of a stored filter that must be replaced
	unread  int         // costOfPages of the events that are not in the stored filter; small Saves count more
}

// A node that does not know a recipient reads the stored filter of the drawer and the pages after it.
// maxUnread limits these: sixteen pages of a few events each, or five full ones. It balances the price
// of a cold Save against that of warm ones, which have to replace the filter more often if the limit is
// lower: 21 RU each time, for a drawer that is half full.
const maxUnread = 16 * costOfPage

// costOfPages returns the cost of reading pages, in units of one event. A page costs as much as the 400
// events that fit into a third of a full one.
func costOfPages(pages, events int) int { return pages*costOfPage + events }

const costOfPage = 400

// costOfTail returns the future cost of reading the events of a tail, when they are in pages of about
// 24.
func costOfTail(events int) int { return costOfPages(0, events) + events*costOfPage/24 }

// A small Save costs a third of any other, so a cold small Save may read a third as many pages. So
// while Saves have one event each, each counts as three.
const (
	smallSaves    = 3
	costOfSmaller = (smallSaves - 1) * (1 + costOfPage/24) // added for each small Save
	fewSmallPages = maxUnread / costOfPage / smallSaves
)

// adoptStored adopts the stored filter of the drawer, which may be nil. It does not use a filter that
// covers more than the slots below limit, which a head or the drawer states: then the head is stale, or
// a newer one was lost in a failover and its slots will have other events. The slots from inPages on
// are in a tail. Older versions store filters that cover some of them; these are replaced.
func (o *openDrawer) adoptStored(f *loadedFilter, limit, inPages int) {
	o.looked = true
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

// drawerFilter returns the filter of all known events.
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

// foldIDs replaces ids and digests by fingerprints.
func (o *openDrawer) foldIDs() {
	if len(o.ids) > 0 {
		o.filter, o.from, o.ids = o.drawerFilter().set, o.fill, nil
	}
}

// size estimates the memory that o takes, in bytes.
func (o *openDrawer) size() int {
	size := 80 * len(o.ids)
	if o.filter != nil {
		size += o.filter.size()
	}
	return size
}
