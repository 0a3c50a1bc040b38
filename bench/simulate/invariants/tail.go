package invariants

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
)

// A tailEvent is an event of a tail, or of a page that a flush wrote.
type tailEvent struct {
	id       [16]byte
	sequence int64
}

var errPacked = errors.New("the packed events cannot be read")

// unpackEvents returns the first n packed events. In data, each number is relative to the previous number, and the
// first number is relative to first.
func unpackEvents(data []byte, n int, first int64) ([]tailEvent, error) {
	if len(data) < 5 || data[0] != 2 {
		return nil, errPacked
	}
	data = data[1 : len(data)-4]
	uvarint := func() uint64 {
		v, size := binary.Uvarint(data)
		if size <= 0 {
			data, size = nil, 0
		}
		data = data[size:]
		return v
	}
	skip := func(size uint64) { data = data[min(size, uint64(len(data))):] }
	var all []tailEvent
	for range n {
		if len(data) < 36 {
			return nil, errPacked
		}
		var e tailEvent
		copy(e.id[:], data)
		skip(32)
		first += int64(uvarint()) //nolint:gosec // a number of events
		e.sequence = first
		uvarint() // weight
		if len(data) == 0 {
			return nil, errPacked
		}
		flags := data[0]
		skip(1)
		if length := uvarint(); flags&2 != 0 { // the text of a new document type, or the index of a known one
			skip(length)
		}
		if flags&8 != 0 {
			skip(16)
			uvarint()
		}
		if flags&16 != 0 {
			uvarint()
		}
		if flags&4 != 0 {
			uvarint()
			skip(4)
		}
		all = append(all, e)
	}
	if len(data) != 0 {
		return nil, errPacked
	}
	return all, nil
}

// pagedSlots returns the number of slots of the last drawer that are stored in pages.
func (c cabinetEnd) pagedSlots() int {
	if c.Tail == "" {
		return c.Fill
	}
	return c.Paged
}

// tailEvents returns the events of the slots from pagedSlots to fill.
func (o *Observer) tailEvents(key Key, name string, c cabinetEnd) []tailEvent {
	if c.Tail == "" {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(c.Tail)
	var events []tailEvent
	if err == nil {
		events, err = unpackEvents(data, c.Fill-c.Paged, 0)
	}
	if err != nil {
		o.addViolation("H1", key, "the tail of %s, slots %d to %d: %v", name, c.Paged, c.Fill, err)
	}
	return events
}

// checkTail checks a cabinet that was flushed, or to which a small Save appended, and returns the number of appended
// events.
func (o *Observer) checkTail(r *recipientState, key Key, before headDocument, name string, was, is cabinetEnd, isSmall bool) int64 {
	old, events := o.tailEvents(key, name, was), o.tailEvents(key, name, is)
	added := is.Total - was.Total
	first := was.Fill // slot of the first new event
	switch {
	case is.Drawer == "" || added < 0 || added > 0 && !isSmall || is.Fill > o.capacity || is.Paged > is.Fill:
		o.addViolation("H8", key, "cabinet %s is %+v, but must be %+v", name, is, was)
		return added
	case is.Drawer == was.Drawer:
		if is.Ordinal != was.Ordinal || is.pagedSlots() < was.pagedSlots() || int64(is.Fill-was.Fill) != added {
			o.addViolation("H8", key, "cabinet %s is %+v, but must be %+v, with events added to its tail", name, is, was)
			return added
		}
	default:
		first = 0
		if is.Ordinal != was.Ordinal+1 || int64(is.Fill) != added || is.pagedSlots() != 0 {
			o.addViolation("H8", key, "cabinet %s continues in another drawer as %+v, but was %+v", name, is, was)
			return added
		}
		o.noteAnnounced(r, key, &saveIntent{}, &intentPart{Cabinet: name, Drawer: is.Drawer, Ordinal: is.Ordinal, New: true})
	}
	if was.Tail != "" {
		until := is.pagedSlots()
		if is.Drawer != was.Drawer {
			until = was.Fill
		}
		if !o.isPaged(was, until) {
			o.addViolation("H8", key, "slots %d to %d of cabinet %s are neither in a tail nor in counted pages", was.Paged, until, name)
		}
	}
	for i, e := range events {
		slot := is.Paged + i
		switch {
		case i > 0 && e.sequence <= events[i-1].sequence || e.sequence > is.Sequence:
			o.addViolation("H3", key, "number %d in slot %d of the tail of %s is out of order", e.sequence, slot, name)
		case slot >= first:
			if e.sequence <= before.Reserved || e.sequence > r.head.Reserved || e.sequence <= was.Sequence {
				o.addViolation("H3", key, "number %d in slot %d of the tail of %s is not a number of the Save", e.sequence, slot, name)
			}
		case slot < was.pagedSlots() || slot-was.Paged >= len(old) || old[slot-was.Paged] != e:
			o.addViolation("H2", key, "slot %d of the tail of %s has changed", slot, name)
		}
	}
	if n := len(events); n > 0 && events[n-1].sequence != is.Sequence || n == 0 && is.Sequence != was.Sequence {
		o.addViolation("H1", key, "cabinet %s does not end with number %d", name, is.Sequence)
	}
	if d := o.drawers[is.Drawer]; d != nil {
		d.fill = is.Fill
	}
	return added
}

// checkDroppedTail checks the tail of a closed drawer: the tail was flushed, or all its events are acknowledged.
func (o *Observer) checkDroppedTail(r *recipientState, key Key, name string, was cabinetEnd) {
	if was.Tail == "" || o.isPaged(was, was.Fill) {
		return
	}
	if at := r.gatePosition(name); at.Sequence < was.Sequence {
		o.addViolation("retention", key, "the tail of %s was dropped, but the gate is at number %d of %d", name, at.Sequence, was.Sequence)
	}
	if closed := r.head.Retention[name].Closed; closed != was.Drawer {
		o.addViolation("retention", key, "the drawer %s of %s was closed, but the head records %q", was.Drawer, name, closed)
	}
}

// isPaged reports whether the slots of a tail up to until are in pages that the drawer counts.
func (o *Observer) isPaged(was cabinetEnd, until int) bool {
	if was.Paged >= until {
		return true
	}
	d := o.drawers[was.Drawer]
	return d != nil && d.doc != nil && d.doc.Count >= until && d.hasPages(was.Paged, until)
}

// hasPages reports whether the slots from slot to until are in pages.
func (d *drawerState) hasPages(slot, until int) bool {
	for slot < until {
		page := d.pages[slot]
		if page == nil {
			return false
		}
		slot = page.Until
	}
	return true
}

// checkFlushed checks a page that was flushed from a tail. After a crash, the head may not count earlier flushed pages
// yet; the next commit of the head counts all these pages.
func (o *Observer) checkFlushed(key Key, d *drawerState, is *pageDocument) {
	last := d.r.head.Cabinets[d.cabinet]
	events, err := unpackEvents(is.Events, is.Until-is.Slot, is.FirstSequence)
	tail := o.tailEvents(d.r.key, d.cabinet, last)
	begin := is.Slot - last.Paged // above 0 if the head does not count earlier pages yet
	if last.Drawer != is.PartitionKey || begin < 0 || !d.hasPages(last.Paged, is.Slot) || is.Until > last.Fill || err != nil || len(events) == 0 ||
		len(tail) < begin+len(events) || !slices.Equal(tail[begin:begin+len(events)], events) {
		o.addViolation("H8", key, "it has the slots %d to %d of drawer %d of %s, which are not the first slots of the tail from slot %d to %d", is.Slot, is.Until, d.ordinal, d.cabinet, last.Paged, last.Fill)
	}
}

// isFlushedTo reports whether a flush may raise the count of the drawer from from to until. It may if a page contains
// these slots and the slots are committed.
func (d *drawerState) isFlushedTo(id string, from, until int) bool {
	last := d.r.head.Cabinets[d.cabinet]
	p := d.pages[from]
	return last.Drawer == id && until <= last.Fill && p != nil && p.Until == until
}
