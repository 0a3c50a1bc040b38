package invariants

import (
	"maps"
	"slices"
)

type headDocument struct {
	PartitionKey string                `json:"partitionKey"`
	Reserved     int64                 `json:"reserved"`
	Watermark    int64                 `json:"watermark"`
	Intent       *saveIntent           `json:"intent"`
	Cabinets     map[string]cabinetEnd `json:"cabinets"`
	Retention    map[string]retained   `json:"retention"`

	RemovedOrdinal int   `json:"removedOrdinal"`
	RemovedTotal   int64 `json:"removedTotal"`
}

// cabinetOf returns in[name], or the initial state of a cabinet if in has no entry for name.
func (h *headDocument) cabinetOf(in map[string]cabinetEnd, name string) cabinetEnd {
	if last, ok := in[name]; ok {
		return last
	}
	return cabinetEnd{
		Ordinal: h.RemovedOrdinal, Total: h.RemovedTotal, BaseOrdinal: h.RemovedOrdinal, BaseTotal: h.RemovedTotal,
	}
}

// floorOf returns the lowest retained ordinal of a cabinet.
func (h *headDocument) floorOf(name string) int {
	return max(h.Retention[name].Floor, h.cabinetOf(h.Cabinets, name).BaseOrdinal+1)
}

type cabinetEnd struct {
	Drawer   string `json:"drawer"`
	Fill     int    `json:"fill"`
	Ordinal  int    `json:"ordinal"`
	Sequence int64  `json:"sequence"`
	Total    int64  `json:"total"`
	Paged    int    `json:"paged"`
	Tail     string `json:"tail"`

	BaseOrdinal int   `json:"baseOrdinal"`
	BaseTotal   int64 `json:"baseTotal"`
}

type retained struct {
	Floor   int    `json:"floor"`
	Cleared int    `json:"cleared"`
	Closed  string `json:"closed"`
}

type saveIntent struct {
	ID      string       `json:"id"`
	First   int64        `json:"first"`
	Last    int64        `json:"last"`
	Aborted bool         `json:"aborted"`
	Parts   []intentPart `json:"parts"`
}

type intentPart struct {
	Cabinet string `json:"cabinet"`
	Drawer  string `json:"drawer"`
	Ordinal int    `json:"ordinal"`
	Slot    int    `json:"slot"`
	Count   int    `json:"count"`
	New     bool   `json:"new"`
	First   int64  `json:"first"`
	Last    int64  `json:"last"`
}

func (p *intentPart) endSlot() int { return p.Slot + p.Count }

// partOf returns the part of the intent that concerns a drawer.
func (it *saveIntent) partOf(drawer string) *intentPart {
	if it == nil {
		return nil
	}
	for i := range it.Parts {
		if it.Parts[i].Drawer == drawer {
			return &it.Parts[i]
		}
	}
	return nil
}

func (o *Observer) checkHead(key Key, c documentChange) {
	var after headDocument
	if c.after == nil {
		o.addViolation("H1", key, "the head was removed")
		return
	}
	if !o.decodeInto(key, c.after, &after) {
		return
	}
	r := o.recipientOf(after.PartitionKey)
	r.key = key
	before := r.head
	r.head = after
	if after.Reserved < before.Reserved {
		o.addViolation("H3", key, "the reserved number went back from %d to %d", before.Reserved, after.Reserved)
	}
	if after.Watermark < before.Watermark || after.Watermark > after.Reserved {
		o.addViolation("H5", key, "the watermark went from %d to %d, with %d reserved", before.Watermark, after.Watermark, after.Reserved)
	}
	expected, watermark := before.Cabinets, before.Watermark
	standing := before.Intent
	switch it := before.Intent; {
	case it == nil:
	case after.Watermark != before.Watermark:
		watermark = it.Last
		o.checkCommitted(key, it, min(after.Watermark, watermark))
		expected, standing = before.afterCommit(expected, it), nil
	case after.Intent == nil || after.Intent.ID != it.ID:
		o.checkCleared(key, it)
		expected, standing = before.afterClear(expected, it), nil
	}
	isSmall := after.Watermark != watermark
	if isSmall && (after.Intent != nil || after.Watermark != after.Reserved || after.Reserved <= before.Reserved) {
		o.addViolation("H5", key, "the watermark moved to %d, with %d reserved, without an intent or a small Save", after.Watermark, after.Reserved)
	}
	o.checkIntent(r, key, before, standing, isSmall)
	o.checkCabinets(r, key, before, expected, isSmall)
	o.checkRetention(r, key, before)
}

// checkCommitted checks that everything that a committed intent announced is stored.
func (o *Observer) checkCommitted(key Key, it *saveIntent, watermark int64) {
	if it.Aborted {
		o.addViolation("H5", key, "the intent %s was committed after it had been claimed for rollback", it.ID)
	}
	if watermark != it.Last {
		o.addViolation("H5", key, "the watermark moved to %d, but the intent ends at %d", watermark, it.Last)
	}
	for i := range it.Parts {
		p := &it.Parts[i]
		d := o.drawers[p.Drawer]
		if d == nil || d.doc == nil {
			o.addViolation("H8", key, "the intent %s was committed, but drawer %d of %s does not exist", it.ID, p.Ordinal, p.Cabinet)
			continue
		}
		if d.doc.Count != p.endSlot() || d.doc.Sealed {
			o.addViolation("H8", key, "the intent %s was committed, but drawer %d of %s has %d events (sealed: %t), not %d", it.ID, p.Ordinal, p.Cabinet, d.doc.Count, d.doc.Sealed, p.endSlot())
		}
		for slot := p.Slot; slot < p.endSlot(); {
			page := d.pages[slot]
			if page == nil || page.Intent != it.ID {
				o.addViolation("H8", key, "the intent %s was committed, but none of its pages begins at slot %d of drawer %d of %s", it.ID, slot, p.Ordinal, p.Cabinet)
				break
			}
			slot = page.Until
		}
		d.fill = p.endSlot()
	}
}

// checkCleared checks the removal of an intent that was not committed. It must have been claimed, and each of its
// drawers must be sealed at the fill from before the intent.
func (o *Observer) checkCleared(key Key, it *saveIntent) {
	if !it.Aborted {
		o.addViolation("H5", key, "the intent %s was removed, but was neither committed nor claimed", it.ID)
	}
	for i := range it.Parts {
		p := &it.Parts[i]
		if d := o.drawers[p.Drawer]; d == nil || d.doc == nil || !d.doc.Sealed || d.doc.Count != p.Slot {
			o.addViolation("H8", key, "the intent %s was cleared, but drawer %d of %s is not sealed at %d", it.ID, p.Ordinal, p.Cabinet, p.Slot)
		}
	}
}

func (h *headDocument) afterCommit(cabinets map[string]cabinetEnd, it *saveIntent) map[string]cabinetEnd {
	next := maps.Clone(cabinets)
	if next == nil {
		next = make(map[string]cabinetEnd)
	}
	for i := range it.Parts {
		p := &it.Parts[i]
		last := h.cabinetOf(next, p.Cabinet)
		next[p.Cabinet] = cabinetEnd{
			Drawer: p.Drawer, Fill: p.endSlot(), Ordinal: p.Ordinal, Sequence: p.Last, Total: last.Total + int64(p.Count),
			BaseOrdinal: last.BaseOrdinal, BaseTotal: last.BaseTotal,
		}
	}
	return next
}

func (h *headDocument) afterClear(cabinets map[string]cabinetEnd, it *saveIntent) map[string]cabinetEnd {
	next := maps.Clone(cabinets)
	if next == nil {
		next = make(map[string]cabinetEnd)
	}
	for i := range it.Parts {
		p := &it.Parts[i]
		last := h.cabinetOf(next, p.Cabinet)
		last.Drawer, last.Fill, last.Ordinal = "", 0, max(last.Ordinal, p.Ordinal)
		next[p.Cabinet] = last
	}
	return next
}

// checkIntent checks the intent of a new head: it is the previous intent, or a new intent whose numbers and slots are
// after everything that was reserved before.
func (o *Observer) checkIntent(r *recipientState, key Key, before headDocument, standing *saveIntent, isSmall bool) {
	it := r.head.Intent
	switch {
	case it == nil:
		if r.head.Reserved != before.Reserved && !isSmall {
			o.addViolation("H3", key, "the reserved number moved to %d without an intent", r.head.Reserved)
		}
	case standing != nil:
		if it.First != standing.First || it.Last != standing.Last || !slices.Equal(it.Parts, standing.Parts) || r.head.Reserved != before.Reserved {
			o.addViolation("H3", key, "the intent %s has changed", it.ID)
		}
		if standing.Aborted && !it.Aborted {
			o.addViolation("H5", key, "the claim of the intent %s for rollback was removed", it.ID)
		}
	default:
		o.checkReserved(r, key, before, it)
	}
}

func (o *Observer) checkReserved(r *recipientState, key Key, before headDocument, it *saveIntent) {
	if r.intents[it.ID] != nil {
		o.addViolation("H3", key, "the intent %s was used before", it.ID)
	}
	if it.First != before.Reserved+1 || it.Last != r.head.Reserved || it.Last < it.First {
		o.addViolation("H3", key, "the intent %s has numbers %d to %d, with %d reserved before and %d after", it.ID, it.First, it.Last, before.Reserved, r.head.Reserved)
	}
	count := int64(0)
	next := r.head.Cabinets
	for i := range it.Parts {
		p := &it.Parts[i]
		count += int64(p.Count)
		last := r.head.cabinetOf(next, p.Cabinet)
		switch {
		case last.Tail != "":
			o.addViolation("H3", key, "the intent %s was reserved while %s has a tail", it.ID, p.Cabinet)
		case p.Count < 1 || p.First < it.First || p.Last > it.Last || p.Last-p.First+1 < int64(p.Count) || p.First <= last.Sequence:
			o.addViolation("H3", key, "the intent %s gives %d events of %s numbers %d to %d", it.ID, p.Count, p.Cabinet, p.First, p.Last)
		case p.endSlot() > o.capacity:
			o.addViolation("H8", key, "the intent %s fills drawer %d of %s up to %d", it.ID, p.Ordinal, p.Cabinet, p.endSlot())
		case p.New && (p.Slot != 0 || p.Ordinal != last.Ordinal+1):
			o.addViolation("H8", key, "the intent %s begins drawer %d of %s at slot %d, after drawer %d", it.ID, p.Ordinal, p.Cabinet, p.Slot, last.Ordinal)
		case !p.New && (p.Drawer != last.Drawer || p.Slot != last.Fill || p.Ordinal != last.Ordinal):
			o.addViolation("H8", key, "the intent %s continues drawer %d of %s at slot %d, but the last drawer is %d, filled up to %d", it.ID, p.Ordinal, p.Cabinet, p.Slot, last.Ordinal, last.Fill)
		}
		o.noteAnnounced(r, key, it, p)
		next = r.head.afterCommit(next, &saveIntent{Parts: []intentPart{*p}})
	}
	if count != it.Last-it.First+1 {
		o.addViolation("H3", key, "the intent %s has %d numbers for %d events", it.ID, it.Last-it.First+1, count)
	}
	r.intents[it.ID] = it
}

// checkCabinets checks the cabinets of a head against the previous head, and against the flush or small Save in the
// same commit. Only a sweep may close a drawer, if no intent fills it, or remove a cabinet, if it is empty.
func (o *Observer) checkCabinets(r *recipientState, key Key, before headDocument, expected map[string]cabinetEnd, isSmall bool) {
	ordinal, total := before.RemovedOrdinal, before.RemovedTotal
	for name, want := range expected {
		if _, ok := r.head.Cabinets[name]; ok {
			continue
		}
		t := before.Retention[name]
		if want.Drawer != "" || t.Closed != "" || max(t.Floor, want.BaseOrdinal+1) <= want.Ordinal || t.Cleared < t.Floor || r.head.Intent.hasPartIn(name) {
			o.addViolation("H8", key, "cabinet %s was removed; it was %+v, with %+v retained", name, want, t)
		}
		if r.head.beginsCabinet() {
			o.addViolation("H8", key, "cabinet %s was removed while an intent begins another one", name)
		}
		o.markReached("a sweep removed a cabinet")
		ordinal, total = max(ordinal, want.Ordinal), max(total, want.Total)
	}
	if r.head.RemovedOrdinal != ordinal || r.head.RemovedTotal != total {
		o.addViolation("H8", key, "the highest removed ordinal and total are %d and %d, but must be %d and %d", r.head.RemovedOrdinal, r.head.RemovedTotal, ordinal, total)
	}
	added := int64(0)
	for name, is := range r.head.Cabinets {
		if _, ok := before.Cabinets[name]; !ok {
			if _, ok := r.began[name]; ok {
				o.markReached("a removed cabinet was used again")
			}
			r.began[name] = before.Watermark
		}
		want := before.cabinetOf(expected, name)
		if is == want {
			continue
		}
		closed := want
		closed.Drawer, closed.Fill, closed.Paged, closed.Tail = "", 0, 0, ""
		switch {
		case is == closed && want.Drawer != "":
			if r.head.Intent.hasPartIn(name) {
				o.addViolation("retention", key, "the last drawer of cabinet %s was closed while an intent fills it", name)
			}
			o.checkDroppedTail(r, key, name, want)
		default:
			added += o.checkTail(r, key, before, name, want, is, isSmall)
		}
	}
	if isSmall && added == 0 {
		o.addViolation("H5", key, "the watermark moved to %d without an intent or a small Save", r.head.Watermark)
	}
	if isSmall && added != r.head.Reserved-before.Reserved {
		o.addViolation("H3", key, "a small Save has %d numbers for %d events", r.head.Reserved-before.Reserved, added)
	}
}

// beginsCabinet reports whether the intent of h has a part in a new cabinet.
func (h *headDocument) beginsCabinet() bool {
	return h.Intent != nil && slices.ContainsFunc(h.Intent.Parts, func(p intentPart) bool {
		_, ok := h.Cabinets[p.Cabinet]
		return !ok
	})
}

// hasPartIn reports whether the intent has a part in a cabinet.
func (it *saveIntent) hasPartIn(cabinet string) bool {
	return it != nil && slices.ContainsFunc(it.Parts, func(p intentPart) bool { return p.Cabinet == cabinet })
}

func (o *Observer) checkRetention(r *recipientState, key Key, before headDocument) {
	for name := range before.Retention {
		if was, is := before.floorOf(name), r.head.floorOf(name); is < was {
			o.addViolation("retention", key, "the floor of %s went back from %d to %d", name, was, is)
		}
	}
	for name, is := range r.head.Retention {
		if is.Cleared > max(is.Floor, 1) {
			o.addViolation("retention", key, "%s is cleared up to %d, above its floor %d", name, is.Cleared, is.Floor)
		}
		if is.Floor <= before.floorOf(name) {
			continue
		}
		if acknowledged := r.acknowledgedBelow(name); is.Floor > acknowledged {
			o.addViolation("retention", key, "the floor of %s rose to %d, but only the drawers below %d are acknowledged", name, is.Floor, acknowledged)
		}
	}
}

// acknowledgedBelow returns the ordinal below which all events of a cabinet are acknowledged. A drawer before the last
// one does not grow, so its events are acknowledged as soon as the gate is at its end. A drawer whose Saves were all
// rolled back is empty, so it counts as acknowledged.
func (r *recipientState) acknowledgedBelow(cabinet string) int {
	last, at := r.head.Cabinets[cabinet], r.gatePosition(cabinet)
	if at.Sequence >= last.Sequence {
		return last.Ordinal + 1
	}
	ordinal := at.Ordinal
	for ; ordinal < last.Ordinal; ordinal++ {
		through := 0
		if ordinal == at.Ordinal {
			through = at.Slot
		}
		if d := r.ordinals[cabinet][ordinal]; d != nil && d.fill > through {
			break
		}
	}
	return ordinal
}
