package smallsaves

// beginFlush begins to flush the tail of a cabinet in the writer's copy of the head.
func (w *writerProcess) beginFlush(c uint8) {
	l := &w.head.cabinets[c]
	w.flush = flush{cabinet: c, drawer: l.drawer, ordinal: l.ordinal, from: l.paged, n: l.tailLen(), events: l.tail}
	w.step = flushPage
}

// beginLeave begins to seal the full drawer of a cabinet.
func (w *writerProcess) beginLeave(c uint8) {
	l := &w.head.cabinets[c]
	w.flush = flush{cabinet: c, drawer: l.drawer, ordinal: l.ordinal, from: l.fill}
	w.step = leaveDrawer
}

// beginFlushes adds the steps by which writer i begins to flush when it has nothing to save.
func (m *model) beginFlushes(s *modelState, i int) {
	for h, cost := range s.head.reads(s.staleReads) {
		found := false
		for c := range h.cabinets {
			if h.cabinets[c].tailLen() == 0 {
				continue
			}
			found = true
			t := *s
			t.staleReads -= cost
			w := &t.writers[i]
			w.head, w.headVersion, w.eager = *h, h.version, true
			w.beginFlush(uint8(c))
			m.addStep(&t, "reads head v%d (%d stale), will flush cabinet %d", h.version, cost, c)
		}
		if !found {
			m.skipJob(s, i, cost, "nothing to flush")
		}
	}
}

// skipJob adds the step by which writer i drops its current batch and continues with the next.
func (m *model) skipJob(s *modelState, i int, cost uint8, why string) {
	t := *s
	t.staleReads -= cost
	t.writers[i].job++
	t.writers[i].startOver()
	m.addStep(&t, "%s", why)
}

// flushEagerly adds the steps by which writer i, which has read h in t, flushes a tail although the
// tail has room for the Save.
func (m *model) flushEagerly(s, t *modelState, i int, h *headDocument) {
	if s.eagerFlushes == 0 {
		return
	}
	for c := range h.cabinets {
		if h.cabinets[c].tailLen() == 0 {
			continue
		}
		u := *t
		u.eagerFlushes--
		w := &u.writers[i]
		w.headVersion, w.eager = h.version, true
		w.beginFlush(uint8(c))
		m.addStep(&u, "reads head v%d, will flush cabinet %d first", h.version, c)
	}
}

// stepFlush adds the steps of writer i while it flushes, or leaves a drawer.
func (m *model) stepFlush(s *modelState, i int) *violation {
	w := &s.writers[i]
	late := m.NoLateFlush && s.head.current.cabinets[w.flush.cabinet].floor > w.flush.ordinal
	switch {
	case w.step == flushPage && m.CountWhenLeft:
		return m.createPageAndDrawer(s, i)
	case late && w.step != flushHead && w.step != leaveDrawer:
		m.startOver(s, i, "flush: the drawer is closed")
	case w.step == flushPage:
		return m.flushPage(s, i)
	case w.step == flushCount:
		return m.flushCount(s, i)
	case w.step == flushEntry:
		m.flushEntry(s, i)
	case w.step == flushHead:
		m.flushHead(s, i)
	default:
		return m.leaveDrawer(s, i)
	}
	return nil
}

// putPage creates the page of a flush in t. If the page exists already, the flush ends at the end
// of that page. written reports whether t has changed.
func (m *model) putPage(t *modelState, f *flush) (written bool, v *violation) {
	current := t.pages[f.drawer].current
	there := current.pageFrom(f.from)
	if there != nil && m.hasRule(createPage) {
		for n := range min(there.n, f.n) {
			if there.events[n] != f.events[n] {
				return false, m.newViolation("H2: the page at the slot of a flush holds something else", "flush of D%d/%d", f.drawer, f.from)
			}
		}
		f.until = there.from + there.n
		if !m.hasRule(adoptPage) {
			f.until = f.from + f.n
		}
		return false, nil
	}
	own := slotPage{writer: flushWrote, from: f.from, n: f.n}
	copy(own.events[:], f.events[:])
	if there != nil {
		*there = own
	} else {
		current.add(own)
	}
	t.pages[f.drawer].write(current, m.Versions)
	f.until = f.from + f.n
	return true, nil
}

// flushPage adds the steps by which the page of a flush is created.
func (m *model) flushPage(s *modelState, i int) *violation {
	t := *s
	w := &t.writers[i]
	f := &w.flush
	w.step = flushCount
	if !m.hasRule(countFlushed) || !m.hasRule(pageBeforeCount) && f.done == 1 {
		w.step = flushEntry
	}
	if !m.hasRule(pageBeforeCount) && f.done == 0 {
		f.done, f.until = 1, f.from+f.n
		m.addStep(&t, "flush: the count first")
		return nil
	}
	written, v := m.putPage(&t, f)
	if v != nil {
		return v
	}
	if !written {
		m.addStep(&t, "flush: page D%d/%d is there and ends at %d", f.drawer, f.from, f.until)
		return nil
	}
	m.addWriteStep(s, &t, "FLUSH page D%d/%d..%d", f.drawer, f.from, f.until)
	return nil
}

// The completed parts of a flush with CountWhenLeft, one bit each.
const (
	pageMade   = 1
	drawerMade = 2
)

// createPageAndDrawer adds the steps by which a flush creates its page and, with the
// first page, the drawer, with a count of 0, in either order.
func (m *model) createPageAndDrawer(s *modelState, i int) *violation {
	f := s.writers[i].flush
	all := uint8(pageMade)
	if f.from == 0 && m.hasRule(countFlushed) {
		all |= drawerMade
	}
	finish := func(w *writerProcess, bit uint8) {
		if w.flush.done |= bit; w.flush.done == all {
			w.step = flushEntry
		}
	}
	if all&drawerMade != 0 && f.done&drawerMade == 0 {
		t := *s
		finish(&t.writers[i], drawerMade)
		c := s.cabinets[f.cabinet].current
		if _, there := c.find(f.drawer); there {
			m.addStep(&t, "flush: D%d is there", f.drawer)
		} else {
			c.put(drawerDocument{id: f.drawer, first: f.events[0].number, ordinal: f.ordinal})
			t.cabinets[f.cabinet].write(c, m.Versions)
			m.addWriteStep(s, &t, "FLUSH creates D%d", f.drawer)
		}
	}
	if f.done&pageMade != 0 {
		return nil
	}
	t := *s
	written, v := m.putPage(&t, &t.writers[i].flush)
	if v != nil {
		return v
	}
	finish(&t.writers[i], pageMade)
	if !written {
		m.addStep(&t, "flush: page D%d/%d is there", f.drawer, f.from)
		return nil
	}
	m.addWriteStep(s, &t, "FLUSH page D%d/%d", f.drawer, f.from)
	return nil
}

// flushCount adds the steps by which the drawer of a flush counts its page.
func (m *model) flushCount(s *modelState, i int) *violation {
	t := *s
	w := &t.writers[i]
	f := &w.flush
	w.step = flushEntry
	if !m.hasRule(pageBeforeCount) {
		w.step = flushPage
	}
	c := s.cabinets[f.cabinet].current
	d, there := c.find(f.drawer)
	switch {
	case !there:
		d = drawerDocument{id: f.drawer, first: f.events[0].number, ordinal: f.ordinal}
	case !m.hasRule(countCondition) || !d.sealed && d.count == f.from:
	case d.count >= f.until:
		f.due = m.dueEntry(s, f, d.position)
		m.addStep(&t, "flush: D%d counts %d already", f.drawer, d.count)
		return nil
	case s.head.current.version == w.headVersion:
		return m.newViolation("stuck: the drawer's count does not fit the head", "flush of D%d/%d", f.drawer, f.from)
	default:
		m.startOver(s, i, "flush: the count is refused")
		return nil
	}
	f.due = m.dueEntry(s, f, d.position)
	d.count = f.until
	c.put(d)
	t.cabinets[f.cabinet].write(c, m.Versions)
	m.addWriteStep(s, &t, "FLUSH counts D%d up to %d", f.drawer, f.until)
	return nil
}

// dueEntry returns the number that must be written to the entry of the drawer of f, or 0 if
// the entry is not due.
func (m *model) dueEntry(s *modelState, f *flush, position uint8) uint8 {
	if !m.FlushEntries || !m.hasRule(entryOfEachFlush) && f.from > 0 {
		return 0
	}
	if f.from > 0 && position < f.from || position >= f.until {
		return 0
	}
	r, _ := s.pages[f.drawer].current.event(max(position, f.from))
	return r.number
}

// flushEntry adds the steps by which a flush writes the due entry, and removes the flushed events
// from the tail in the writer's copy of the head.
func (m *model) flushEntry(s *modelState, i int) {
	t := *s
	w := &t.writers[i]
	f := w.flush
	if f.due > 0 {
		domain := m.domainOf(int(f.cabinet))
		c := s.catalogs[domain].current
		c.put(modelEntry{drawer: f.drawer, cabinet: f.cabinet, next: f.due})
		t.catalogs[domain].write(c, m.Versions)
	}
	l := &w.head.cabinets[f.cabinet]
	if f.until > l.fill {
		m.startOver(s, i, "flush: the page is longer than the tail, the head is old")
		return
	}
	l.dropTail(f.until)
	w.flushed, w.flush = true, flush{}
	if w.eager && w.nFresh > 0 {
		u := t
		u.writers[i].eager = false
		m.decideSave(&u, i)
		m.addStep(&u, "flush: entry %d, the Save writes the head", f.due)
	}
	if w.eager {
		w.step = flushHead
	} else {
		m.decideSave(&t, i)
	}
	if f.due > 0 {
		m.loseReply(s, &t, "FLUSH writes entry %d", f.due)
	}
	m.addStep(&t, "flush: entry %d", f.due)
}

// dropTail removes the tail's events in slots below until.
func (c *cabinetHead) dropTail(until uint8) {
	if until <= c.paged {
		return
	}
	n := int(until - c.paged)
	if n <= maxTail {
		c.pagedSequence = c.tail[n-1].number
	}
	var rest [maxTail]numberedEvent
	copy(rest[:], c.tail[min(n, maxTail):])
	c.tail, c.paged = rest, until
}

// flushHead adds the steps of the conditional write that removes the flushed events from
// the head.
func (m *model) flushHead(s *modelState, i int) {
	w, t := &s.writers[i], *s
	if s.head.current.version != w.headVersion && m.hasRule(flushedIfMatch) {
		m.startOver(s, i, "flush: the head has changed")
		return
	}
	m.replaceHead(&t, w.head, 0)
	u := &t.writers[i]
	if w.nFresh == 0 {
		u.job++
		u.startOver()
	} else {
		u.head.version = t.head.current.version
		u.flushed, u.eager = false, false
		m.decideSave(&t, i)
	}
	m.addWriteStep(s, &t, "FLUSHED: head v%d", t.head.current.version)
}

// leaveDrawer adds the steps by which a full drawer is sealed at its fill. After that, the head may
// leave the drawer.
func (m *model) leaveDrawer(s *modelState, i int) *violation {
	t := *s
	w := &t.writers[i]
	f := w.flush
	c := s.cabinets[f.cabinet].current
	d, there := c.find(f.drawer)
	if !there || d.sealed && d.count != f.from {
		if s.head.current.version == w.headVersion {
			return m.newViolation("stuck: a full drawer cannot be left", "leave D%d", f.drawer)
		}
		m.startOver(s, i, "leave: refused")
		return nil
	}
	sealed := d.sealed
	d.sealed, d.count = true, f.from
	if !sealed {
		c.put(d)
		t.cabinets[f.cabinet].write(c, m.Versions)
	}
	w.left |= 1 << f.cabinet
	w.flush = flush{}
	m.decideSave(&t, i)
	if sealed {
		m.addStep(&t, "leave: D%d is sealed already", f.drawer)
		return nil
	}
	m.addWriteStep(s, &t, "LEAVE: seals D%d at %d", f.drawer, f.from)
	return nil
}
