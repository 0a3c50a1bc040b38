package smallsaves

// A reading is one possible result of reading several partitions.
type reading struct {
	cost     uint8  // number of stale reads
	received uint16 // received events, one bit each
}

// readHead reads the head and updates the index of received ids, for each version
// of the partitions that a read may return.
func (m *model) readHead(s *modelState, i int, j *job) *violation {
	for h, cost := range s.head.reads(s.staleReads) {
		if h.intent.low != 0 && (m.hasRule(smallWithoutIntent) || j.large) {
			m.resolveIntent(s, i, h, cost)
			continue
		}
		if v := m.addDedupSteps(s, i, j, h, cost); v != nil {
			return v
		}
	}
	return nil
}

// resolveIntent adds the step of writer i that finds an intent in the head. The writer resumes its
// own intent, and rolls back the intent of another writer.
func (m *model) resolveIntent(s *modelState, i int, h *headDocument, cost uint8) {
	w, t := &s.writers[i], *s
	t.staleReads -= cost
	u := &t.writers[i]
	if w.refused && h.intent.writer == w.id && h.intent.incarnation == w.incarnation && !h.intent.aborted {
		u.refused, u.plan, u.headVersion, u.head, u.done, u.due, u.step = false, h.intent, h.version, headDocument{}, 0, 0, writePages
		m.addStep(&t, "reads head v%d: its own intent stands", h.version)
		return
	}
	if s.rollbacks == 0 {
		return
	}
	t.rollbacks--
	u.refused, u.head, u.done, u.plan, u.step = false, *h, 0, h.intent, sealDrawers
	if m.hasRule(claimFirst) && !h.intent.aborted {
		u.step = claim
	}
	m.addStep(&t, "reads head v%d (%d stale): rolls back the intent %d..%d", h.version, cost, h.intent.low, h.intent.high)
}

// addDedupSteps adds the steps of writer i that has read h: the writer drops the events that the
// index contains, and decides how to save the remaining events.
func (m *model) addDedupSteps(s *modelState, i int, j *job, h *headDocument, cost uint8) *violation {
	readings, unsealed := m.readIndex(s, j, h, cost)
	for n, r := range readings {
		if repeats(readings[:n], r) {
			continue
		}
		t := *s
		t.staleReads -= r.cost
		t.writers[i].refused = false
		for _, d := range unsealed {
			m.sealDrawer(&t, d)
		}
		w := &t.writers[i]
		var fresh [3]uint8
		nFresh := uint8(0)
		for _, e := range j.events {
			if r.received>>e&1 == 0 {
				fresh[nFresh] = e
				nFresh++
			}
		}
		if nFresh == 0 {
			if v := m.addSuccessStep(&t, i, j, "reads head v%d: all are duplicates, Save succeeds", h.version); v != nil {
				return v
			}
			continue
		}
		w.head, w.large, w.fresh, w.nFresh = *h, j.large, fresh, nFresh
		unflushed := t
		m.decideSave(&t, i)
		m.addStep(&t, "reads head v%d (%d stale), will save %v", h.version, r.cost, fresh[:nFresh])
		m.flushEagerly(s, &unflushed, i, h)
	}
	return nil
}

func repeats(earlier []reading, r reading) bool {
	for _, e := range earlier {
		if e == r {
			return true
		}
	}
	return false
}

// A drawerRef identifies a drawer of a cabinet.
type drawerRef struct {
	cabinet int
	drawer  uint8
}

// sealDrawer closes a drawer for further events at its count. It models a conditional write, which
// acts on the current document.
func (m *model) sealDrawer(t *modelState, r drawerRef) {
	c := t.cabinets[r.cabinet].current
	d, _ := c.find(r.drawer)
	d.sealed = true
	c.put(d)
	t.cabinets[r.cabinet].write(c, m.Versions)
}

// readIndex returns every possible result of reading the index of the cabinets of j with the head h,
// and the drawers that the reader must seal: unsealed drawers with a smaller ordinal than the head's.
func (m *model) readIndex(s *modelState, j *job, h *headDocument, cost uint8) (readings []reading, unsealed []drawerRef) {
	readings = []reading{{cost: cost}}
	for c := range cabinets {
		if !j.concernsCabinet(c) {
			continue
		}
		var found []reading
		for _, r := range readings {
			for view, stale := range s.cabinets[c].reads(s.staleReads - r.cost) {
				extents, behind, ok := m.drawerExtents(s, h, c, view)
				unsealed = appendNew(unsealed, behind)
				if ok {
					found = m.readExtents(s, h, c, extents, reading{r.cost + stale, r.received}, found)
				}
			}
		}
		readings = found
	}
	return readings, unsealed
}

func (j *job) concernsCabinet(cabinet int) bool {
	for _, e := range j.events {
		if cabinetOf(e) == cabinet {
			return true
		}
	}
	return false
}

func appendNew(refs, more []drawerRef) []drawerRef {
	for _, r := range more {
		known := false
		for _, x := range refs {
			known = known || x == r
		}
		if !known {
			refs = append(refs, r)
		}
	}
	return refs
}

// An extent is the number of slots of a drawer that are in pages.
type extent struct{ drawer, until uint8 }

// drawerExtents returns the drawers that the index must read with h and a view of the cabinet, and
// those of the drawers that must be sealed. ok is false if the view is too old, so that a drawer
// above the floor is missing.
func (m *model) drawerExtents(s *modelState, h *headDocument, c int, view *cabinetDrawers) (all []extent, unsealed []drawerRef, ok bool) {
	last, ok := &h.cabinets[c], true
	if last.drawer != 0 {
		all = append(all, extent{last.drawer, last.paged})
	}
	for _, d := range view.drawers {
		if d.id == 0 || d.id == last.drawer || d.ordinal < last.floor || m.hasRule(denseOrdinals) && d.ordinal > last.ordinal {
			continue
		}
		if !m.hasRule(trustSealedOnly) {
			if d.sealed || d.count == m.Capacity {
				all = append(all, extent{d.id, d.count})
			} else {
				ok = false
			}
			continue
		}
		truth, there := s.cabinets[c].current.find(d.id)
		if !there {
			ok = false
			continue
		}
		all = append(all, extent{d.id, truth.count})
		if !truth.sealed {
			unsealed = append(unsealed, drawerRef{c, d.id})
		}
	}
	return all, unsealed, ok && (!m.hasRule(denseOrdinals) || last.isComplete(view))
}

// isComplete reports whether view has each drawer from the floor of c to its ordinal.
func (c *cabinetHead) isComplete(view *cabinetDrawers) bool {
	for o := max(c.floor, 1); o <= c.ordinal; o++ {
		there := o == c.ordinal && c.drawer != 0
		for _, d := range view.drawers {
			there = there || d.id != 0 && d.ordinal == o
		}
		if !there {
			return false
		}
	}
	return true
}

// readExtents appends to found every possible result of reading the pages of extents,
// together with the tail of the cabinet.
func (m *model) readExtents(s *modelState, h *headDocument, c int, extents []extent, r reading, found []reading) []reading {
	ways := []reading{r}
	for _, x := range extents {
		var next []reading
		for _, way := range ways {
			for p, stale := range s.pages[x.drawer].reads(s.staleReads - way.cost) {
				if received, ok := p.receivedEvents(x.until); ok {
					next = append(next, reading{way.cost + stale, way.received | received})
				}
			}
		}
		ways = next
	}
	var tail uint16
	if m.hasRule(indexTail) {
		for _, e := range h.cabinets[c].events() {
			tail |= 1 << e.event
		}
	}
	for _, way := range ways {
		found = append(found, reading{way.cost, way.received | tail})
	}
	return found
}

// receivedEvents returns the events in the slots below until, one bit each. ok is false if an event
// is missing.
func (p *pages) receivedEvents(until uint8) (events uint16, ok bool) {
	for slot := range until {
		r, there := p.event(slot)
		if !there {
			return 0, false
		}
		events |= 1 << r.event
	}
	return events, true
}
