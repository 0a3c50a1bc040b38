package invariants

import (
	"slices"
	"strings"
)

type gateDocument struct {
	Recipient  string                     `json:"recipient"`
	Generation int64                      `json:"generation"`
	Open       string                     `json:"open"`
	At         map[string]cabinetPosition `json:"at"`
	Removed    int64                      `json:"removed"`
	Requests   []string                   `json:"dequeueRequests"`
}

// positionIn returns the position of g in a cabinet. If the cabinet was removed and used again, the position is before
// the first event of the new cabinet.
func (g *gateDocument) positionIn(cabinet string, h *headDocument) cabinetPosition {
	at, ok := g.At[cabinet]
	if !ok {
		at.Sequence = g.Removed
	}
	if last := h.Cabinets[cabinet]; last.BaseOrdinal > 0 && at.Ordinal <= last.BaseOrdinal {
		at.Ordinal, at.Slot, at.Total = last.BaseOrdinal+1, 0, last.BaseTotal
	}
	return at
}

type cabinetPosition struct {
	Ordinal  int   `json:"ordinal"`
	Slot     int   `json:"slot"`
	Sequence int64 `json:"sequence"`
	Total    int64 `json:"total"`
}

type bundleDocument struct {
	Recipient string          `json:"recipient"`
	State     string          `json:"state"`
	Group     string          `json:"group"`
	Cabinet   string          `json:"cabinet"`
	Count     int             `json:"count"`
	Weight    string          `json:"weight"`
	First     int64           `json:"first"`
	Last      int64           `json:"last"`
	Content   string          `json:"content"`
	Ranges    []slots         `json:"ranges"`
	Start     cabinetPosition `json:"start"`
	Object    string          `json:"object"`
	Gone      bool            `json:"gone"` // the object with the content was deleted
	TTL       int             `json:"ttl"`
	Watched   bool            `json:"watched"`
	Changes   int64           `json:"changes"` // number of changes that have a notice
	Expires   int64           `json:"expires"` // time after which a sweep may remove the bundle
	Rid       string          `json:"_rid"`    // resource id, which differs even if two documents have the same id
}

type slots struct {
	Drawer  string `json:"drawer"`
	Ordinal int    `json:"ordinal"`
	From    int    `json:"from"`
	To      int    `json:"to"`
}

const maxDrawers = 6

// mailboxChanges are the changes of a commit to gates, bundles and notices of one recipient.
type mailboxChanges struct {
	gates          map[string]changedState[gateDocument]   // changed gates, by id
	bundles        map[string]changedState[bundleDocument] // changed bundles, by id
	notices        map[string]notice                       // notices for domains that the commit created, by bundle
	forSubscribers map[string]notice                       // notices for subscribers that the commit created, by bundle
	watched        map[string]notice                       // notices of changes for watches that the commit created, by bundle
	removed        map[string]notice                       // notices of removals for watches that the commit created, by bundle
	orders         map[string]bool                         // operators' orders in the records that the commit created
}

// changedState is a document before and after a commit. before is nil if the commit created the document, and after is
// nil if the commit deleted it.
type changedState[T any] struct {
	key           Key
	before, after *T
}

// sortChange adds the change of a document in the bundles container to the changes of the document's recipient. The
// kind of the document determines the field of mailboxChanges.
func (o *Observer) sortChange(key Key, c documentChange, of map[string]*mailboxChanges) {
	whole := c.after
	if whole == nil {
		whole = c.before
	}
	var kind struct{ Kind, Recipient, What string }
	if !o.decodeInto(key, whole, &kind) {
		return
	}
	m := of[kind.Recipient]
	if m == nil {
		m = &mailboxChanges{
			gates: make(map[string]changedState[gateDocument]), bundles: make(map[string]changedState[bundleDocument]),
			notices: make(map[string]notice), forSubscribers: make(map[string]notice), watched: make(map[string]notice), removed: make(map[string]notice), orders: make(map[string]bool),
		}
		of[kind.Recipient] = m
	}
	r := o.recipientOf(kind.Recipient)
	switch kind.Kind {
	case "gate":
		m.gates[key.ID] = replaceState(o, key, c, r.gates)
	case "bundle":
		m.bundles[key.ID] = replaceState(o, key, c, r.bundles)
	case "notice":
		o.checkNotice(m, key, c)
	case "record":
		if c.before == nil {
			m.orders[kind.What] = true
		}
	}
}

// replaceState replaces the known state of a document, and returns both states.
func replaceState[T any](o *Observer, key Key, c documentChange, known map[string]*T) changedState[T] {
	d := changedState[T]{key: key, before: known[key.ID]}
	if c.after == nil {
		delete(known, key.ID)
		return d
	}
	is := new(T)
	if o.decodeInto(key, c.after, is) {
		d.after = is
		known[key.ID] = is
	}
	return d
}

// isReplacedAfterExpiry reports whether was is a closed bundle that has expired, and is is a new document with the same
// id.
func (was *bundleDocument) isReplacedAfterExpiry(is *bundleDocument) bool {
	return was.State != "open" && was.TTL > 0 && was.Rid != is.Rid
}

func (o *Observer) checkMailbox(r *recipientState, m *mailboxChanges) {
	for _, b := range m.bundles {
		o.checkBundle(r, m, b)
	}
	for id, g := range m.gates {
		o.checkGate(r, m, id, g)
	}
	o.checkNewNotices(r, m)
	if len(m.gates)+len(m.bundles) == 0 {
		return
	}
	open := make(map[string]string)
	for id, b := range r.bundles {
		if b.State != "open" {
			continue
		}
		key := Key{"bundles", partitionOf(m), id}
		if other, ok := open[b.Group]; ok {
			o.addViolation("H6", key, "it is open, but bundle %s of the same group %s is open too", other, b.Group)
		}
		open[b.Group] = id
		if g := r.gates["gate."+b.Group]; g == nil || g.Open != id {
			o.addViolation("H6", key, "it is open, but its gate does not refer to it")
		}
	}
	for id, g := range r.gates {
		if g.Open != "" && open[strings.TrimPrefix(id, "gate.")] != g.Open {
			o.addViolation("H6", Key{"bundles", partitionOf(m), id}, "its open bundle %s does not exist or is not open", g.Open)
		}
	}
}

// partitionOf returns the partition of a commit.
func partitionOf(m *mailboxChanges) string {
	for _, g := range m.gates {
		return g.key.Partition
	}
	for _, b := range m.bundles {
		return b.key.Partition
	}
	return ""
}

// checkBundle checks a change of a bundle.
func (o *Observer) checkBundle(r *recipientState, m *mailboxChanges, b changedState[bundleDocument]) {
	was, is := b.before, b.after
	if was != nil && is != nil && was.isReplacedAfterExpiry(is) {
		was = nil
	}
	if was != nil && is != nil && !was.sameAs(is) {
		o.addViolation("H6", b.key, "a bundle has changed")
	}
	if is != nil {
		o.checkContent(r, b.key, was, is)
	}
	switch from, to := was.stateOf(), is.stateOf(); from + " to " + to {
	case "none to open":
		if before := r.firsts[is.Group]; is.First <= before {
			o.addViolation("H4", b.key, "it begins with number %d, after a bundle that began with %d: an event was skipped", is.First, before)
		}
		r.firsts[is.Group] = is.First
		o.checkOpened(r, m, b.key, is)
	case "dequeued to open", "skipped to open":
		if !m.orders["replay"] {
			o.addViolation("H7", b.key, "a bundle that was %s is open again without the record of a replay", from)
		}
		if first := is.Ranges[0].Ordinal; first < r.floorOf(is.Cabinet) {
			o.addViolation("retention", b.key, "a reopened bundle begins in drawer %d, below the floor %d", first, r.floorOf(is.Cabinet))
		}
	case "open to dequeued":
	case "open to skipped":
		if !m.orders["skip"] {
			o.addViolation("H7", b.key, "a bundle was skipped without a record")
		}
	case "open to released":
		if !m.orders["release"] {
			o.addViolation("H7", b.key, "a bundle was released without a record")
		}
		r.firsts[is.Group] = min(r.firsts[is.Group], is.First-1) // a later bundle may deliver the released events again
	case "open to none":
		o.addViolation("H6", b.key, "an open bundle was removed")
	default:
		if from != to && to != "none" {
			o.addViolation("H7", b.key, "a bundle went from %s to %s", from, to)
		}
	}
}

func (b *bundleDocument) stateOf() string {
	if b == nil {
		return "none"
	}
	return b.State
}

// sameAs reports whether two states of a bundle have the same events and the same content. The content may differ if
// the object with the content was deleted.
func (b *bundleDocument) sameAs(c *bundleDocument) bool {
	return b.Group == c.Group && b.Cabinet == c.Cabinet && b.Count == c.Count && b.Weight == c.Weight && b.First == c.First &&
		b.Last == c.Last && b.Content == c.Content && b.Start == c.Start && slices.Equal(b.Ranges, c.Ranges) &&
		(b.Object == "" || b.Object == c.Object || b.Gone)
}

// checkOpened checks that a new bundle has committed events that are not acknowledged.
func (o *Observer) checkOpened(r *recipientState, m *mailboxChanges, key Key, b *bundleDocument) {
	count := 0
	for _, s := range b.Ranges {
		count += s.To - s.From
	}
	switch {
	case len(b.Ranges) == 0 || len(b.Ranges) > maxDrawers:
		o.addViolation("H9", key, "it spans %d drawers", len(b.Ranges))
		return
	case count != b.Count || b.Last < b.First:
		o.addViolation("H6", key, "it has %d events, %d to %d, but its ranges have %d slots", b.Count, b.First, b.Last, count)
	case b.Last > r.head.Watermark:
		o.addViolation("H5", key, "it ends with number %d, above the watermark %d", b.Last, r.head.Watermark)
	}
	before := m.gates["gate."+b.Group].before
	if before == nil {
		before = &gateDocument{}
	}
	at := before.positionIn(b.Cabinet, &r.head)
	o.gates[originOf(b.Cabinet)] = "gate." + b.Group
	if at != b.Start {
		o.addViolation("H7", key, "it records the gate at %+v, but the gate was at %+v", b.Start, at)
	}
	ordinal, slot := at.Ordinal, at.Slot
	for _, s := range b.Ranges {
		ordinal, slot = o.skipEmpty(r, b.Cabinet, ordinal, slot)
		if s.Ordinal != ordinal || s.From != slot {
			o.addViolation("H7", key, "it continues at slot %d of drawer %d, but the next event is at slot %d of drawer %d", s.From, s.Ordinal, slot, ordinal)
			return
		}
		d := o.drawers[s.Drawer]
		if d == nil || d.r != r || d.cabinet != b.Cabinet || d.ordinal != s.Ordinal {
			o.addViolation("H6", key, "drawer %s does not have ordinal %d of %s", s.Drawer, s.Ordinal, b.Cabinet)
			return
		}
		if s.To > d.fill || s.To <= s.From {
			o.addViolation("H5", key, "it has the slots %d to %d of drawer %d, of which only %d are committed", s.From, s.To, s.Ordinal, d.fill)
		}
		slot = s.To
	}
	first := o.drawers[b.Ranges[0].Drawer]
	if p := first.pages[b.Ranges[0].From]; p != nil && p.FirstSequence != b.First {
		o.addViolation("H6", key, "it records %d as its first number, but that is %d", b.First, p.FirstSequence)
	}
}

// skipEmpty returns the position of the next committed event at or after a position.
func (o *Observer) skipEmpty(r *recipientState, cabinet string, ordinal, slot int) (int, int) {
	for last := r.head.Cabinets[cabinet].Ordinal; ordinal < last; ordinal, slot = ordinal+1, 0 {
		d := r.ordinals[cabinet][ordinal]
		if ordinal > 0 && d != nil && !d.isGone() && slot < d.fill {
			break
		}
	}
	return ordinal, slot
}

// checkGate checks a change of a gate.
func (o *Observer) checkGate(r *recipientState, m *mailboxChanges, id string, g changedState[gateDocument]) {
	if g.after == nil {
		o.addViolation("H7", g.key, "a gate was removed")
		return
	}
	was := g.before
	if was == nil {
		was = &gateDocument{}
	}
	if g.after.Generation <= was.Generation {
		o.addViolation("H7", g.key, "its generation went from %d to %d", was.Generation, g.after.Generation)
	}
	expected := make(map[string]cabinetPosition)
	for _, b := range m.bundles {
		if b.before == nil || b.after == nil || "gate."+b.after.Group != id {
			continue
		}
		switch {
		case b.before.State == "open" && (b.after.State == "dequeued" || b.after.State == "skipped"):
			end := b.after.Ranges[len(b.after.Ranges)-1]
			expected[b.after.Cabinet] = cabinetPosition{
				Ordinal: end.Ordinal, Slot: end.To, Sequence: b.after.Last, Total: was.At[b.after.Cabinet].Total + int64(b.after.Count),
			}
		case b.before.State != "open" && b.after.State == "open" && m.orders["replay"]:
			expected[b.after.Cabinet] = b.after.Start
		}
	}
	o.checkForgotten(r, id, g.key, was, g.after)
	for cabinet, is := range g.after.At {
		want, moves := expected[cabinet]
		if !moves {
			want = was.At[cabinet]
		}
		if is != want && (moves || is != was.positionIn(cabinet, &r.head)) {
			o.addViolation("H7", g.key, "in cabinet %s its position is %+v, but must be %+v", cabinet, is, want)
		}
		last, has := r.head.Cabinets[cabinet]
		if !has || is.Ordinal <= last.BaseOrdinal { // the position is in a removed cabinet
			last = cabinetEnd{Ordinal: r.head.RemovedOrdinal, Total: r.head.RemovedTotal, Sequence: r.head.Watermark}
		}
		if is.Sequence > last.Sequence || is.Total > last.Total || is.Ordinal > last.Ordinal {
			o.addViolation("H7", g.key, "in cabinet %s its position is %+v, but events were received only up to %+v", cabinet, is, last)
		}
	}
	for cabinet, want := range expected {
		if _, ok := g.after.At[cabinet]; !ok && want != (cabinetPosition{}) {
			o.addViolation("H7", g.key, "in cabinet %s its position must be %+v", cabinet, want)
		}
	}
}

// checkForgotten checks the cabinets that have no position in a gate. A gate may drop a position only if the cabinet
// was removed. Events of a cabinet without a position count as acknowledged up to the gate's highest removed number, so
// that number must be below each waiting event.
func (o *Observer) checkForgotten(r *recipientState, id string, key Key, was, is *gateDocument) {
	for cabinet, at := range was.At {
		if _, ok := is.At[cabinet]; ok || at == (cabinetPosition{}) {
			continue
		}
		if _, ok := r.head.Cabinets[cabinet]; ok && at.Ordinal > r.head.Cabinets[cabinet].BaseOrdinal || is.Removed < at.Sequence {
			o.addViolation("H7", key, "it no longer has a position in cabinet %s", cabinet)
		}
		o.markReached("a gate forgot a removed cabinet")
	}
	if is.Removed == was.Removed {
		return
	}
	if is.Removed < was.Removed || is.Removed > r.head.Watermark {
		o.addViolation("H7", key, "its highest removed number went from %d to %d, with the watermark at %d", was.Removed, is.Removed, r.head.Watermark)
	}
	for cabinet := range r.head.Cabinets {
		if _, ok := is.At[cabinet]; !ok && o.gates[originOf(cabinet)] == id && r.began[cabinet] < is.Removed && r.head.Cabinets[cabinet].Sequence > was.Removed {
			o.addViolation("H7", key, "it has no position in cabinet %s, which began after number %d, but treats all events up to %d as acknowledged", cabinet, r.began[cabinet], is.Removed)
		}
	}
}

func originOf(cabinet string) string {
	origin, _, _ := strings.Cut(cabinet, "|")
	return origin
}
