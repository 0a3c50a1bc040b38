package smallsaves

import "slices"

// beginSweeps adds the steps by which writer i begins to sweep: it removes the documents of
// a closed drawer that still exist, or closes the last drawer of a cabinet once all its
// events are acknowledged.
func (m *model) beginSweeps(s *modelState, i int) {
	for h, cost := range s.head.reads(s.staleReads) {
		for b, more := range s.bundles.reads(s.staleReads - cost) {
			found := false
			for c := range h.cabinets {
				t := *s
				t.staleReads -= cost + more
				w := &t.writers[i]
				w.flush.cabinet = uint8(c)
				l := &h.cabinets[c]
				switch {
				case l.closed != 0 || s.hasDrawerBelow(c, l.floor):
					w.flush.drawer, w.flush.ordinal, w.step = l.closed, l.floor-1, removeEntries
					m.addStep(&t, "sweep: cabinet %d has drawers below %d", c, l.floor)
				case l.drawer == 0 || b.gate.at[c].sequence < l.sequence || m.retainsEvent(s, c) || h.reserves(c):
					continue
				default:
					w.head, w.headVersion, w.gate, w.step = *h, h.version, b.gate, proveGate
					m.addStep(&t, "sweep: all of cabinet %d in head v%d is acknowledged", c, h.version)
				}
				found = true
			}
			if !found {
				m.skipJob(s, i, cost+more, "nothing to sweep")
			}
		}
	}
}

func (s *modelState) hasDrawerBelow(c int, floor uint8) bool {
	for _, d := range s.cabinets[c].current.drawers {
		if d.id != 0 && d.ordinal < floor {
			return true
		}
	}
	return false
}

// retainsEvent reports whether a sweep must retain the ids of a cabinet because a later job of this
// scenario saves one of its events again.
func (m *model) retainsEvent(s *modelState, c int) bool {
	for _, r := range s.history.committedOf(c) {
		for _, jobs := range m.jobs {
			if slices.ContainsFunc(jobs, func(j job) bool { return j.has(r.event) }) {
				return true
			}
		}
	}
	return false
}

// stepSweep adds the steps of writer i while it sweeps.
func (m *model) stepSweep(s *modelState, i int) {
	switch s.writers[i].step {
	case proveGate:
		m.proveGate(s, i)
	case closeDrawer:
		m.closeDrawer(s, i)
	case clearClosed:
		m.clearClosed(s, i)
	default:
		m.removeClosed(s, i)
	}
}

// proveGate adds the step that verifies, with a conditional write, that the gate is current.
func (m *model) proveGate(s *modelState, i int) {
	if s.bundles.current.gate.version != s.writers[i].gate.version {
		m.startOver(s, i, "sweep: the gate has changed")
		return
	}
	t := *s
	b := s.bundles.current
	b.gate.version++
	t.bundles.write(b, m.Versions)
	t.writers[i].gate, t.writers[i].step = gateDocument{}, closeDrawer
	m.addStep(&t, "SWEEP proves the gate")
}

// closeDrawer adds the steps of the conditional write of the head that closes the last
// drawer of a cabinet and raises the floor.
func (m *model) closeDrawer(s *modelState, i int) {
	t := *s
	w := &t.writers[i]
	if s.head.current.version != w.headVersion && m.hasRule(sweepIfMatch) {
		m.startOver(s, i, "sweep: the head has changed")
		return
	}
	c := w.flush.cabinet
	last := w.head.cabinets[c]
	h := s.head.current
	h.cabinets[c] = cabinetHead{
		ordinal: last.ordinal, sequence: last.sequence, pagedSequence: last.sequence,
		floor: last.ordinal + 1, closed: last.drawer,
	}
	if !m.hasRule(noteClosedDrawer) {
		h.cabinets[c].closed = 0
	}
	m.replaceHead(&t, h, 0)
	removed := uint8(0)
	for _, r := range s.history.committedOf(int(c)) {
		if r.number <= last.sequence {
			removed++
		}
	}
	t.history.swept[c] = max(t.history.swept[c], removed)
	w.head, w.step, w.flush.ordinal, w.flush.drawer = headDocument{}, removeEntries, last.ordinal, h.cabinets[c].closed
	m.addWriteStep(s, &t, "SWEEP closes cabinet %d at floor %d", c, last.ordinal+1)
}

// removeClosed adds the step that removes entries, pages or documents of the drawers below the
// floor, and of the drawer that the head records as closed.
func (m *model) removeClosed(s *modelState, i int) {
	t := *s
	w := &t.writers[i]
	c := w.flush.cabinet
	var gone []uint8
	for _, d := range s.cabinets[c].current.drawers {
		if d.id != 0 && d.ordinal <= w.flush.ordinal {
			gone = append(gone, d.id)
		}
	}
	if d := w.flush.drawer; d != 0 && !slices.Contains(gone, d) {
		gone = append(gone, d)
	}
	what := "entries"
	switch w.step {
	case removeEntries:
		domain := m.domainOf(int(c))
		entries := s.catalogs[domain].current
		for _, d := range gone {
			entries.remove(d)
		}
		t.catalogs[domain].write(entries, m.Versions)
	case removePages:
		what = "pages"
		for _, d := range gone {
			t.pages[d].write(pages{}, m.Versions)
		}
	default:
		what = "documents"
		drawers := s.cabinets[c].current
		for n := range drawers.drawers {
			if slices.Contains(gone, drawers.drawers[n].id) {
				drawers.drawers[n] = drawerDocument{}
			}
		}
		t.cabinets[c].write(drawers, m.Versions)
	}
	w.step++
	m.addStep(&t, "SWEEP removes %s of drawers %v", what, gone)
}

// clearClosed adds the steps that remove the closed drawer from the head.
func (m *model) clearClosed(s *modelState, i int) {
	t := *s
	f := s.writers[i].flush
	h := s.head.current
	if l := &h.cabinets[f.cabinet]; f.drawer != 0 && l.closed == f.drawer {
		l.closed = 0
		m.replaceHead(&t, h, 0)
	}
	t.writers[i].job++
	t.writers[i].startOver()
	m.addWriteStep(s, &t, "SWEEP forgets the closed drawer of cabinet %d", f.cabinet)
}
