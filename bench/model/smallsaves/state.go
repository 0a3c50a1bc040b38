package smallsaves

import "slices"

// Sizes of the model. All fields of a state are bytes, so that it is compared and
// hashed as one piece of memory.
const (
	processes  = 2 // writers, and as many actors
	cabinets   = 2
	maxDrawers = 12 // ids are 1 to 11
	maxPages   = 3  // of a drawer
	maxBundles = 12
	maxEvents  = 8 // ids are 1 to 7
	maxParts   = 3 // of an intent, and ranges of a bundle
	maxTail    = 2
)

// A record is an event with the sequence number that it was saved under.
type record struct{ event, number uint8 }

// A part is the slots of one drawer that an intent reserves.
type part struct {
	cabinet, drawer, ordinal, from, n uint8
	isNew                             bool
	events                            [3]record
}

func (p *part) end() uint8 { return p.from + p.n }

// An intent is a large Save that has been reserved and not committed. It is absent if
// low is 0.
type intent struct {
	low, high, writer, incarnation uint8
	aborted                        bool
	n                              uint8
	parts                          [maxParts]part
}

func (t *intent) all() []part { return t.parts[:t.n] }

// A cabinetHead is the part of a head about one cabinet.
type cabinetHead struct {
	drawer, fill, ordinal, sequence uint8
	paged                           uint8 // slots below it are in pages, those from it to fill in the tail
	pagedSequence                   uint8 // of the last event in a page
	floor                           uint8 // drawers with a smaller ordinal are removed
	closed                          uint8 // the drawer that a sweep has closed and not yet removed
	tail                            [maxTail]record
}

// tailLen returns the number of events in the tail.
func (c *cabinetHead) tailLen() uint8 {
	if c.fill < c.paged {
		return 0
	}
	return c.fill - c.paged
}

// events returns the events in the tail.
func (c *cabinetHead) events() []record { return c.tail[:min(c.tailLen(), maxTail)] }

// inTail returns the event at a slot from paged on.
func (c *cabinetHead) inTail(slot uint8) (record, bool) {
	if i := int(slot) - int(c.paged); i >= 0 && i < maxTail {
		return c.tail[i], c.tail[i] != record{}
	}
	return record{}, false
}

// closeDrawer makes c name no drawer, with ordinal as the highest that was used.
func (c *cabinetHead) closeDrawer(ordinal uint8) {
	*c = cabinetHead{ordinal: ordinal, sequence: c.sequence, pagedSequence: c.pagedSequence, floor: c.floor, closed: c.closed}
}

// A head is the document of a recipient that records what was received.
type head struct {
	version, operation, reserved, watermark uint8
	intent                                  intent
	cabinets                                [cabinets]cabinetHead
}

// names reports whether the intent of h reserves slots of a cabinet.
func (h *head) names(cabinet int) bool {
	for _, p := range h.intent.all() {
		if int(p.cabinet) == cabinet {
			return true
		}
	}
	return false
}

// A drawer is the document that counts the events of a drawer in pages.
type drawer struct {
	id, first, count, position uint8
	sealed                     bool
	ordinal                    uint8
}

// A cabinet is the drawers of a cabinet in its partition.
type cabinet struct{ drawers [maxDrawers]drawer }

func (d drawer) key() uint8 { return d.id }

func (c *cabinet) find(id uint8) (drawer, bool) { return find(c.drawers[:], id) }

// put replaces the drawer with the id of d, or adds d.
func (c *cabinet) put(d drawer) { put(c.drawers[:], d) }

// A keyed is a document or hint about a drawer. Its key is the id of the drawer, 0 in a slot
// of an array that is free.
type keyed interface{ key() uint8 }

// find returns the element of all with an id.
func find[T keyed](all []T, id uint8) (T, bool) {
	for _, x := range all {
		if x.key() == id && id != 0 {
			return x, true
		}
	}
	var none T
	return none, false
}

// put replaces the element of all with the key of x, or the first free one.
func put[T keyed](all []T, x T) {
	free := -1
	for i := range all {
		switch all[i].key() {
		case x.key():
			all[i] = x
			return
		case 0:
			if free < 0 {
				free = i
			}
		}
	}
	all[free] = x
}

// An entry of the catalog has the first unacknowledged number of a drawer.
type entry struct{ drawer, cabinet, next, version uint8 }

// A catalog is the entries of a recipient and domain.
type catalog struct{ entries [maxDrawers]entry }

func (e entry) key() uint8 { return e.drawer }

func (c *catalog) find(drawer uint8) (entry, bool) { return find(c.entries[:], drawer) }

// put replaces the entry of a drawer, or adds it, under a new version.
func (c *catalog) put(e entry) {
	e.version = c.newest() + 1
	put(c.entries[:], e)
}

func (c *catalog) newest() (version uint8) {
	for _, e := range c.entries {
		version = max(version, e.version)
	}
	return version
}

// remove deletes the entry of a drawer and sorts the others.
func (c *catalog) remove(drawer uint8) {
	for i := range c.entries {
		if c.entries[i].drawer == drawer {
			c.entries[i] = entry{}
		}
	}
	slices.SortStableFunc(c.entries[:], func(a, b entry) int { return int(a.drawer-1) - int(b.drawer-1) }) // 0 comes last
}

// A page holds the events of consecutive slots.
type page struct {
	writer  uint8 // low of the intent that wrote it, flushWrote of a flush
	from, n uint8
	events  [3]record
}

const flushWrote = 255

// pages are those of a drawer in its partition.
type pages struct{ all [maxPages]page }

// event returns the event in a slot.
func (p *pages) event(slot uint8) (record, bool) {
	for i := range p.all {
		if x := &p.all[i]; x.n > 0 && slot >= x.from && slot < x.from+x.n {
			return x.events[slot-x.from], true
		}
	}
	return record{}, false
}

// pageFrom returns the page that begins at the slot from, nil if none does.
func (p *pages) pageFrom(from uint8) *page {
	for i := range p.all {
		if p.all[i].n > 0 && p.all[i].from == from {
			return &p.all[i]
		}
	}
	return nil
}

func (p *pages) add(x page) {
	for i := range p.all {
		if p.all[i].n == 0 {
			p.all[i] = x
			return
		}
	}
}

func (p *pages) empty() bool { return *p == pages{} }

// A slotRange is the events of one drawer in a bundle. Its last number is number.
type slotRange struct{ drawer, ordinal, from, to, number uint8 }

type bundleState uint8

const (
	absent bundleState = iota
	open
	dequeuing // the Dequeue is recorded, the gate not advanced; only without dequeueInOneBatch
	closed
)

// A bundle is the events that a Peek has returned.
type bundle struct {
	state            bundleState
	version, cabinet uint8
	nRanges          uint8
	ranges           [maxParts]slotRange
	n                uint8
	events           [4]record
}

func (b *bundle) all() []record          { return b.events[:b.n] }
func (b *bundle) allRanges() []slotRange { return b.ranges[:b.nRanges] }

// A place is a position in a cabinet: after the event with the number sequence.
type place struct{ ordinal, slot, sequence uint8 }

// A gate records what was acknowledged, and which bundle is open.
type gate struct {
	version, open uint8
	at            [cabinets]place
}

// advance moves the gate to the end of b.
func (g *gate) advance(b *bundle) {
	r := b.ranges[b.nRanges-1]
	if at := &g.at[b.cabinet]; r.number > at.sequence {
		*at = place{r.ordinal, r.to, r.number}
	}
}

// bundles is the partition of the gate and its bundles.
type bundles struct {
	gate gate
	all  [maxBundles]bundle
}

// A history records every step for the checks. No process reads it.
type history struct {
	log       [cabinets][7]record // what was committed, in order
	logged    [cabinets]uint8
	bundled   [cabinets]uint8 // events that are in bundles
	acked     [cabinets]uint8 // events that were dequeued
	swept     [cabinets]uint8 // events that a sweep may have removed
	committed uint8           // events, one bit each
	answered  uint8           // events whose Save returned success, one bit each
	dequeued  uint8           // bundles whose Dequeue was answered, one bit each
	top       uint8           // the highest number that became visible
	payload   [maxEvents]uint8
}

func (h *history) committedOf(cabinet int) []record { return h.log[cabinet][:h.logged[cabinet]] }

// nextOf returns the first committed event of a cabinet that no bundle has.
func (h *history) nextOf(cabinet int) (record, bool) {
	if h.bundled[cabinet] < h.logged[cabinet] {
		return h.log[cabinet][h.bundled[cabinet]], true
	}
	return record{}, false
}

// A state is everything that the next steps of a scenario depend on.
type state struct {
	payloads [processes]uint8 // in the content store, by the writer that put them, one bit for each event
	head     versions[head]
	catalogs [cabinets]versions[catalog] // one for each domain
	cabinets [cabinets]versions[cabinet]
	pages    [maxDrawers]versions[pages]
	bundles  versions[bundles]

	drawersMade, bundlesMade uint8
	history                  history

	crashes, lostReplies, staleReads, rollbacks, eagerFlushes uint8 // budgets that are left

	writers [processes]writer
	actors  [processes]actor
}

// forgetVersions removes the versions that only stale reads can return.
func (s *state) forgetVersions() {
	s.head.forget()
	for i := range s.catalogs {
		s.catalogs[i].forget()
	}
	for i := range s.cabinets {
		s.cabinets[i].forget()
	}
	for i := range s.pages {
		s.pages[i].forget()
	}
	s.bundles.forget()
}

// documents returns the state with its documents alone: no process is at work, no fault
// left.
func (s *state) documents() state {
	t := *s
	t.forgetVersions()
	t.writers, t.actors = [processes]writer{}, [processes]actor{}
	t.crashes, t.lostReplies, t.staleReads, t.rollbacks, t.eagerFlushes = 0, 0, 0, 0, 0
	t.head.current.operation = 0
	return t
}

// leaks reports whether there is a page whose drawer neither the head nor a document
// names.
func (s *state) leaks() bool {
	for d := range s.pages {
		if !s.pages[d].current.empty() && !s.named(uint8(d)) {
			return true
		}
	}
	return false
}

func (s *state) named(drawer uint8) bool {
	for c := range s.cabinets {
		if _, ok := s.cabinets[c].current.find(drawer); ok || s.head.current.cabinets[c].drawer == drawer {
			return true
		}
	}
	return false
}
