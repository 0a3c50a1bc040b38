package smallsaves

import "slices"

// Sizes of the model. All fields of a state are bytes, so that it is compared and
// hashed as one piece of memory.
const (
	processes  = 2 // number of writers, and also of actors
	cabinets   = 2
	maxDrawers = 12 // one more than the highest drawer id, 11
	maxPages   = 3  // pages of a drawer
	maxBundles = 12
	maxEvents  = 8 // one more than the highest event id, 7
	maxParts   = 3 // parts of an intent, and ranges of a bundle
	maxTail    = 2
)

// A numberedEvent is an event with the sequence number that it was saved under.
type numberedEvent struct{ event, number uint8 }

// A reservedPart is the slots of one drawer that an intent reserves.
type reservedPart struct {
	cabinet, drawer, ordinal, from, n uint8
	isNew                             bool
	events                            [3]numberedEvent
}

func (p *reservedPart) end() uint8 { return p.from + p.n }

// A saveIntent is a large Save that has been reserved and not committed. It is absent if
// low is 0.
type saveIntent struct {
	low, high, writer, incarnation uint8
	aborted                        bool
	n                              uint8
	parts                          [maxParts]reservedPart
}

func (t *saveIntent) all() []reservedPart { return t.parts[:t.n] }

// A cabinetHead is the part of a head about one cabinet.
type cabinetHead struct {
	drawer, fill, ordinal, sequence uint8
	paged                           uint8 // slots below paged are in pages, slots from paged to fill are in the tail
	pagedSequence                   uint8 // number of the last event in a page
	floor                           uint8 // drawers with a smaller ordinal are removed
	closed                          uint8 // drawer that a sweep has closed and not removed yet
	tail                            [maxTail]numberedEvent
}

// tailLen returns the number of events in the tail.
func (c *cabinetHead) tailLen() uint8 {
	if c.fill < c.paged {
		return 0
	}
	return c.fill - c.paged
}

// events returns the events in the tail.
func (c *cabinetHead) events() []numberedEvent { return c.tail[:min(c.tailLen(), maxTail)] }

// inTail returns the tail's event in a slot.
func (c *cabinetHead) inTail(slot uint8) (numberedEvent, bool) {
	if i := int(slot) - int(c.paged); i >= 0 && i < maxTail {
		return c.tail[i], c.tail[i] != numberedEvent{}
	}
	return numberedEvent{}, false
}

// closeDrawer removes the current drawer from c, and records ordinal as the highest used ordinal.
func (c *cabinetHead) closeDrawer(ordinal uint8) {
	*c = cabinetHead{ordinal: ordinal, sequence: c.sequence, pagedSequence: c.pagedSequence, floor: c.floor, closed: c.closed}
}

// A headDocument is the head of a recipient: the state of its cabinets and the current intent.
type headDocument struct {
	version, operation, reserved, watermark uint8
	intent                                  saveIntent
	cabinets                                [cabinets]cabinetHead
}

// reserves reports whether the intent of h reserves slots of a cabinet.
func (h *headDocument) reserves(cabinet int) bool {
	for _, p := range h.intent.all() {
		if int(p.cabinet) == cabinet {
			return true
		}
	}
	return false
}

// A drawerDocument is the document that counts the events of a drawer in pages.
type drawerDocument struct {
	id, first, count, position uint8
	sealed                     bool
	ordinal                    uint8
}

// A cabinetDrawers holds the documents in the partition of a cabinet, one for each drawer.
type cabinetDrawers struct{ drawers [maxDrawers]drawerDocument }

func (d drawerDocument) key() uint8 { return d.id }

func (c *cabinetDrawers) find(id uint8) (drawerDocument, bool) { return find(c.drawers[:], id) }

// put replaces the drawer with the id of d, or adds d.
func (c *cabinetDrawers) put(d drawerDocument) { put(c.drawers[:], d) }

// A drawerRecord is a document or hint about a drawer. Its key is the id of the drawer, 0 in a free
// slot of an array.
type drawerRecord interface{ key() uint8 }

// find returns the element of all with an id.
func find[T drawerRecord](all []T, id uint8) (T, bool) {
	for _, x := range all {
		if x.key() == id && id != 0 {
			return x, true
		}
	}
	var none T
	return none, false
}

// put replaces the element of all with the key of x, or else the first free element.
func put[T drawerRecord](all []T, x T) {
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

// A modelEntry is an entry of the catalog: the first unacknowledged number of a drawer.
type modelEntry struct{ drawer, cabinet, next, version uint8 }

// A catalog is the entries of a recipient and domain.
type catalog struct{ entries [maxDrawers]modelEntry }

func (e modelEntry) key() uint8 { return e.drawer }

func (c *catalog) find(drawer uint8) (modelEntry, bool) { return find(c.entries[:], drawer) }

// put replaces the entry of a drawer, or adds it, under a new version.
func (c *catalog) put(e modelEntry) {
	e.version = c.newest() + 1
	put(c.entries[:], e)
}

func (c *catalog) newest() (version uint8) {
	for _, e := range c.entries {
		version = max(version, e.version)
	}
	return version
}

// remove deletes the entry of a drawer, and sorts the remaining entries.
func (c *catalog) remove(drawer uint8) {
	for i := range c.entries {
		if c.entries[i].drawer == drawer {
			c.entries[i] = modelEntry{}
		}
	}
	slices.SortStableFunc(c.entries[:], func(a, b modelEntry) int { return int(a.drawer-1) - int(b.drawer-1) }) // free elements, with the key 0, come last
}

// A slotPage holds the events of consecutive slots.
type slotPage struct {
	writer  uint8 // low of the intent that wrote the page, or flushWrote
	from, n uint8
	events  [3]numberedEvent
}

const flushWrote = 255

// A pages value holds the pages of a drawer.
type pages struct{ all [maxPages]slotPage }

// event returns the event in a slot.
func (p *pages) event(slot uint8) (numberedEvent, bool) {
	for i := range p.all {
		if x := &p.all[i]; x.n > 0 && slot >= x.from && slot < x.from+x.n {
			return x.events[slot-x.from], true
		}
	}
	return numberedEvent{}, false
}

// pageFrom returns the page that begins at the slot from, or nil if no page begins there.
func (p *pages) pageFrom(from uint8) *slotPage {
	for i := range p.all {
		if p.all[i].n > 0 && p.all[i].from == from {
			return &p.all[i]
		}
	}
	return nil
}

func (p *pages) add(x slotPage) {
	for i := range p.all {
		if p.all[i].n == 0 {
			p.all[i] = x
			return
		}
	}
}

func (p *pages) empty() bool { return *p == pages{} }

// A slotRange is the range of a bundle's events in one drawer. number is the number of its last
// event.
type slotRange struct{ drawer, ordinal, from, to, number uint8 }

type bundleState uint8

const (
	absent bundleState = iota
	open
	dequeuing // the Dequeue is recorded and the gate is not advanced yet; only without dequeueAtOnce
	closed
)

// A peekedBundle describes the events that a Peek has returned.
type peekedBundle struct {
	state            bundleState
	version, cabinet uint8
	nRanges          uint8
	ranges           [maxParts]slotRange
	n                uint8
	events           [4]numberedEvent
}

func (b *peekedBundle) all() []numberedEvent   { return b.events[:b.n] }
func (b *peekedBundle) allRanges() []slotRange { return b.ranges[:b.nRanges] }

// A cabinetPosition is a position in a cabinet: after the event with the number sequence.
type cabinetPosition struct{ ordinal, slot, sequence uint8 }

// A gateDocument records the position after the last acknowledged event, and the open bundle.
type gateDocument struct {
	version, open uint8
	at            [cabinets]cabinetPosition
}

// advance moves the gate to the end of b.
func (g *gateDocument) advance(b *peekedBundle) {
	r := b.ranges[b.nRanges-1]
	if at := &g.at[b.cabinet]; r.number > at.sequence {
		*at = cabinetPosition{r.ordinal, r.to, r.number}
	}
}

// bundles is the partition that contains the gate and its bundles.
type bundles struct {
	gate gateDocument
	all  [maxBundles]peekedBundle
}

// A history records every step for the checks. No process reads it.
type history struct {
	log       [cabinets][7]numberedEvent // committed events of each cabinet, in order
	logged    [cabinets]uint8
	bundled   [cabinets]uint8 // number of events that are in bundles
	acked     [cabinets]uint8 // number of events that were dequeued
	swept     [cabinets]uint8 // number of acknowledged events that a sweep may have removed
	committed uint8           // committed events, one bit each
	answered  uint8           // events whose Save returned success, one bit each
	dequeued  uint8           // bundles whose Dequeue was answered, one bit each
	top       uint8           // the highest number that became visible
	payload   [maxEvents]uint8
}

func (h *history) committedOf(cabinet int) []numberedEvent { return h.log[cabinet][:h.logged[cabinet]] }

// nextOf returns the first committed event of a cabinet that is not in a bundle.
func (h *history) nextOf(cabinet int) (numberedEvent, bool) {
	if h.bundled[cabinet] < h.logged[cabinet] {
		return h.log[cabinet][h.bundled[cabinet]], true
	}
	return numberedEvent{}, false
}

// A modelState is everything that the next steps of a scenario depend on.
type modelState struct {
	payloads [processes]uint8 // payloads in the content store, by the writer that stored them; one bit for each event
	head     versions[headDocument]
	catalogs [cabinets]versions[catalog] // one catalog for each domain
	cabinets [cabinets]versions[cabinetDrawers]
	pages    [maxDrawers]versions[pages]
	bundles  versions[bundles]

	drawersMade, bundlesMade uint8
	history                  history

	crashes, lostReplies, staleReads, rollbacks, eagerFlushes uint8 // remaining budgets

	writers [processes]writerProcess
	actors  [processes]actor
}

// forgetVersions removes the older versions, which only stale reads can return.
func (s *modelState) forgetVersions() {
	s.head.dropOlder()
	for i := range s.catalogs {
		s.catalogs[i].dropOlder()
	}
	for i := range s.cabinets {
		s.cabinets[i].dropOlder()
	}
	for i := range s.pages {
		s.pages[i].dropOlder()
	}
	s.bundles.dropOlder()
}

// documents returns a copy of the state that contains only the documents: no process is active and
// no faults remain.
func (s *modelState) documents() modelState {
	t := *s
	t.forgetVersions()
	t.writers, t.actors = [processes]writerProcess{}, [processes]actor{}
	t.crashes, t.lostReplies, t.staleReads, t.rollbacks, t.eagerFlushes = 0, 0, 0, 0, 0
	t.head.current.operation = 0
	return t
}

// leaks reports whether a page exists whose drawer neither the head nor a document refers to.
func (s *modelState) leaks() bool {
	for d := range s.pages {
		if !s.pages[d].current.empty() && !s.named(uint8(d)) {
			return true
		}
	}
	return false
}

func (s *modelState) named(drawer uint8) bool {
	for c := range s.cabinets {
		if _, ok := s.cabinets[c].current.find(drawer); ok || s.head.current.cabinets[c].drawer == drawer {
			return true
		}
	}
	return false
}
