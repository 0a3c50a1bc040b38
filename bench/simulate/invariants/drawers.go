package invariants

// A drawerState is the known state of a drawer. It comes from the documents of the drawer, and from the intents that
// reserve slots of the drawer.
type drawerState struct {
	r       *recipientState
	cabinet string
	ordinal int
	parts   map[string]*intentPart // parts of intents that concern the drawer, by intent
	doc     *drawerDoc             // document of the drawer; nil if it is not stored
	pages   map[int]*pageDocument  // pages of the drawer, by first slot
	fill    int                    // number of committed events
}

type drawerDoc struct {
	ID            string `json:"id"`
	PartitionKey  string `json:"partitionKey"`
	Ordinal       int    `json:"ordinal"`
	FirstSequence int64  `json:"firstSequence"`
	Count         int    `json:"count"`
	Sealed        bool   `json:"sealed"`
	Operation     string `json:"operation"`
}

type pageDocument struct {
	PartitionKey  string `json:"partitionKey"`
	Intent        string `json:"intent"`
	Slot          int    `json:"slot"`
	Until         int    `json:"until"`
	FirstSequence int64  `json:"firstSequence"`
	Events        []byte `json:"events"`
}

// noteAnnounced records the part of an intent that concerns a drawer.
func (o *Observer) noteAnnounced(r *recipientState, key Key, it *saveIntent, p *intentPart) {
	of := r.ordinals[p.Cabinet]
	if of == nil {
		of = make(map[int]*drawerState)
		r.ordinals[p.Cabinet] = of
	}
	d := o.drawers[p.Drawer]
	if d == nil {
		d = &drawerState{r: r, cabinet: p.Cabinet, ordinal: p.Ordinal, parts: make(map[string]*intentPart), pages: make(map[int]*pageDocument)}
		o.drawers[p.Drawer] = d
		if of[p.Ordinal] != nil {
			o.addViolation("H8", key, "the intent %s uses ordinal %d of %s again", it.ID, p.Ordinal, p.Cabinet)
		}
		of[p.Ordinal] = d
	} else if p.New || d.r != r || d.cabinet != p.Cabinet || d.ordinal != p.Ordinal {
		o.addViolation("H8", key, "the intent %s reserves drawer %s, which has ordinal %d of %s", it.ID, p.Drawer, d.ordinal, d.cabinet)
	}
	d.parts[it.ID] = p
}

// isGone reports whether the drawer is below the floor, so that it is never read again.
func (d *drawerState) isGone() bool { return d.ordinal < d.r.floorOf(d.cabinet) }

func (o *Observer) checkDrawer(key Key, c documentChange) {
	d := o.drawers[key.ID]
	if d == nil {
		o.addViolation("H8", key, "no intent has reserved this drawer")
		return
	}
	before := d.doc
	var after *drawerDoc
	if c.after != nil {
		after = &drawerDoc{}
		if !o.decodeInto(key, c.after, after) {
			return
		}
	}
	d.doc = after
	switch {
	case d.isGone():
	case after == nil:
		o.addViolation("retention", key, "drawer %d of %s was removed, but the floor is only %d", d.ordinal, d.cabinet, d.r.floorOf(d.cabinet))
	case before == nil:
		o.checkNewDrawer(key, d)
	default:
		o.checkUpdatedDrawer(key, d, before)
	}
}

func (o *Observer) checkNewDrawer(key Key, d *drawerState) {
	it := d.r.head.Intent
	p := it.partOf(key.ID)
	if p == nil && d.isFlushedTo(key.ID, 0, d.doc.Count) && !d.doc.Sealed && d.doc.Ordinal == d.ordinal && d.doc.PartitionKey == d.r.head.PartitionKey+"|"+d.cabinet {
		return
	}
	if p == nil || !p.New || d.doc.Operation != it.ID || d.doc.Ordinal != p.Ordinal || d.doc.PartitionKey != d.r.head.PartitionKey+"|"+p.Cabinet {
		o.addViolation("H8", key, "the current intent does not allow this new drawer")
		return
	}
	if isOwners, isRollbacks := d.doc.Count == p.Count && !d.doc.Sealed, d.doc.Count == 0 && d.doc.Sealed && it.Aborted; !isOwners && !isRollbacks {
		o.addViolation("H8", key, "it was created with %d events (sealed: %t), but the intent reserved %d", d.doc.Count, d.doc.Sealed, p.Count)
	}
}

func (o *Observer) checkUpdatedDrawer(key Key, d *drawerState, before *drawerDoc) {
	is, it := d.doc, d.r.head.Intent
	p := it.partOf(key.ID)
	if is.ID != before.ID || is.PartitionKey != before.PartitionKey || is.Ordinal != before.Ordinal || is.FirstSequence != before.FirstSequence {
		o.addViolation("H8", key, "an immutable member of a drawer has changed")
	}
	if is.Count > o.capacity {
		o.addViolation("H8", key, "it holds %d events, more than %d", is.Count, o.capacity)
	}
	switch {
	case before.Sealed:
		if !is.Sealed || is.Count != before.Count || is.Operation != before.Operation {
			o.addViolation("H8", key, "it changed after it was sealed")
		}
	case is.Sealed && p != nil && it.Aborted:
		if is.Count != p.Slot {
			o.addViolation("H8", key, "the rollback of %s sealed it at %d events, but it had %d before the intent", it.ID, is.Count, p.Slot)
		}
	case is.Sealed:
		last := d.r.head.Cabinets[d.cabinet]
		if last.Drawer == key.ID || last.Ordinal < d.ordinal || is.Count != d.fill {
			o.addViolation("H8", key, "it was sealed at %d events, but %d of its events are committed, and the last drawer of the head is %d", is.Count, d.fill, last.Ordinal)
		}
	case is.Count != before.Count || is.Operation != before.Operation:
		if p == nil && d.isFlushedTo(key.ID, before.Count, is.Count) {
			break
		}
		if p == nil || is.Operation != it.ID || before.Count != p.Slot || is.Count != p.endSlot() {
			o.addViolation("H8", key, "its count went from %d to %d, which the current intent does not allow", before.Count, is.Count)
		}
	}
}

func (o *Observer) checkPage(key Key, c documentChange) {
	before := o.pages[key]
	var after *pageDocument
	if c.after != nil {
		after = &pageDocument{}
		if !o.decodeInto(key, c.after, after) {
			return
		}
	}
	whole := after
	if after == nil {
		whole = before
	}
	if whole == nil {
		return
	}
	d := o.drawers[whole.PartitionKey]
	if d == nil {
		o.addViolation("H8", key, "no intent has reserved a drawer %s", whole.PartitionKey)
		return
	}
	switch {
	case d.isGone():
	case after == nil:
		o.addViolation("retention", key, "a page of drawer %d of %s was removed, but the floor is only %d", d.ordinal, d.cabinet, d.r.floorOf(d.cabinet))
	case before != nil:
		o.addViolation("H8", key, "a page was written again")
	default:
		o.checkNewPage(key, d, after)
	}
	if after == nil {
		delete(o.pages, key)
		delete(d.pages, whole.Slot)
		return
	}
	o.pages[key], d.pages[after.Slot] = after, after
}

func (o *Observer) checkNewPage(key Key, d *drawerState, is *pageDocument) {
	p := d.parts[is.Intent]
	switch {
	case p == nil && d.r.head.Cabinets[d.cabinet].Tail != "":
		o.checkFlushed(key, d, is)
	case p == nil:
		o.addViolation("H8", key, "the intent %s has not reserved slots in drawer %d of %s", is.Intent, d.ordinal, d.cabinet)
		return
	case is.Slot < p.Slot || is.Until > p.endSlot() || is.Until <= is.Slot:
		o.addViolation("H8", key, "it has the slots %d to %d, but its intent reserved %d to %d", is.Slot, is.Until, p.Slot, p.endSlot())
	case is.FirstSequence < p.First || is.FirstSequence > p.Last || is.Slot == p.Slot && is.FirstSequence != p.First:
		o.addViolation("H3", key, "it begins with number %d, but its intent reserved %d to %d", is.FirstSequence, p.First, p.Last)
	}
	for _, other := range d.pages {
		if other.Slot < is.Until && is.Slot < other.Until {
			o.addViolation("H8", key, "its slots %d to %d overlap with the slots %d to %d of another page", is.Slot, is.Until, other.Slot, other.Until)
		}
	}
}
