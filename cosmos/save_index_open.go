package cosmos

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/domain"
)

// An openDrawer is what the index knows of the drawer that a cabinet is filling: its events
// in the slots below fill. Those below from are known as fingerprints, which another node
// has left or this one keeps to save memory, the others with their digests.
type openDrawer struct {
	drawer  string // "": no drawer is open
	ordinal int
	looked  bool // the stored filter was looked for
	fill    int
	hasLost bool // some of the events are lost, and their ids unknown: the filter is not stored
	from    int
	filter  *fingerprintSet // nil if from is 0
	ids     map[domain.EventID]domain.Digest
	stored  *storedFilter
	misfit  azcore.ETag // etag of a stored filter that must be replaced
	unread  int         // costOfPages of what is not in the stored filter, small Saves counted more
}

// A node that does not know a recipient reads the stored filter of the drawer and the pages
// behind it. maxUnread bounds these: sixteen pages of a few events each, or five full ones.
// It is the price of a cold Save against that of a warm one, which has to replace the filter
// more often if the bound is lower: 21 RU each time, for a drawer that is half full.
const maxUnread = 16 * costOfPage

// costOfPages is what the reading of pages costs, in the units of one event. A page costs as
// much as the 400 events that fit into a third of a full one.
func costOfPages(pages, events int) int { return pages*costOfPage + events }

const costOfPage = 400

// costOfTail is what the reading of events costs that are in a tail now, and will be in pages
// of some 24.
func costOfTail(events int) int { return costOfPages(0, events) + events*costOfPage/24 }

// A small Save costs a third of any other, so a cold one may read a third as many pages. Where
// Saves of one event follow each other, each counts as three.
const (
	smallSaves    = 3
	costOfSmaller = (smallSaves - 1) * (1 + costOfPage/24) // is added for each small Save
	fewSmallPages = maxUnread / costOfPage / smallSaves
)

// adoptStored adopts the stored filter of the drawer, which may be nil. One that covers more
// than the slots below limit, which a head or the drawer knows, is not used: the head is an
// old one, or a newer one was lost in a failover and its slots have other events now. The slots
// from inPages on are in a tail. Older versions store filters that cover some of them; these are
// replaced.
func (o *openDrawer) adoptStored(f *readFilter, limit, inPages int) {
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

// drawerFilter returns the filter of all events that are known.
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

// foldIDs replaces the ids by their fingerprints.
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
