package smallsaves

// A Peek may know the first number of a cabinet without reading an entry. The model represents this
// number by an entry with one of the following values, which no stored entry has.
const (
	lookedUp     = 254 // drawer of an entry whose number was read from the cabinet
	noSuchUpdate = 255 // version of every entry that is not stored
)

// addChooseSteps adds the steps by which a Peek chooses the cabinet that its bundle comes from.
func (m *model) addChooseSteps(s *modelState, i int) *violation {
	none := versions[catalog]{}
	second := &none
	if m.TwoDomains {
		second = &s.catalogs[1]
	}
	for h, cost := range s.head.reads(s.staleReads) {
		for c0, more := range s.catalogs[0].reads(s.staleReads - cost) {
			for c1, most := range second.reads(s.staleReads - cost - more) {
				t := *s
				t.staleReads -= cost + more + most
				if v := m.chooseFrom(s, &t, i, h, [cabinets]*catalog{c0, c1}); v != nil {
					return v
				}
			}
		}
	}
	return nil
}

// chooseFrom adds the step by which a Peek chooses a cabinet, after it has read the head h and the
// catalogs.
func (m *model) chooseFrom(s, t *modelState, i int, h *headDocument, catalogs [cabinets]*catalog) *violation {
	a := &t.actors[i]
	var e modelEntry
	var found bool
	var firsts []uint8
	if m.hasRule(chooseCandidates) {
		e, firsts, found = m.smallestCandidate(s, a, h, catalogs)
	} else {
		e, found = smallestEntry(catalogs, func(e modelEntry) bool { return e.next <= h.watermark })
	}
	if !found && m.hasRule(keepPlace) && !m.hasRule(chooseCandidates) {
		for c := range cabinets {
			if h.cabinets[c].sequence > a.gate.at[c].sequence {
				m.keepHead(a, h)
				a.entry, a.step = modelEntry{cabinet: uint8(c), next: 1}, compose
				m.addStep(t, "Peek: no entry, the head says that cabinet %d has events", c)
				return nil
			}
		}
	}
	if !found {
		return m.returnNoData(s, t, a)
	}
	m.keepHead(a, h)
	a.entry, a.step, a.limit = e, compose, 0
	if m.InOrder && m.hasRule(keepOrder) && e.next > 0 {
		for _, first := range firsts {
			if first > e.next && (a.limit == 0 || first < a.limit) {
				a.limit = first
			}
		}
	}
	m.addStep(t, "Peek: watermark %d, entry D%d at %d in cabinet %d", h.watermark, e.drawer, e.next, e.cabinet)
	return nil
}

// keepHead copies the fields of h that the Peek needs to compose a bundle.
func (m *model) keepHead(a *actor, h *headDocument) {
	a.head = headDocument{watermark: h.watermark}
	if m.hasRule(trustSealedOnly) {
		a.head.cabinets = h.cabinets
	}
}

// smallestEntry returns the entry with the smallest number among those that match.
func smallestEntry(catalogs [cabinets]*catalog, match func(modelEntry) bool) (smallest modelEntry, found bool) {
	for _, c := range catalogs {
		for _, e := range c.entries {
			if e.drawer != 0 && match(e) && (!found || e.next < smallest.next) {
				smallest, found = e, true
			}
		}
	}
	return smallest, found
}

// smallestCandidate returns the entry of the cabinet with the smallest first number. The entry has
// no drawer if the Peek must read the cabinet. firsts are the first numbers of cabinets that the
// Peek knows without an entry.
func (m *model) smallestCandidate(s *modelState, a *actor, h *headDocument, catalogs [cabinets]*catalog) (smallest modelEntry, firsts []uint8, found bool) {
	for c := range cabinets {
		l, at := &h.cabinets[c], &a.gate.at[c]
		if l.sequence <= at.sequence {
			continue
		}
		e := m.candidateEntry(s, a, l, c, catalogs[m.domainOf(c)])
		if e.version == noSuchUpdate {
			firsts = append(firsts, e.next)
		}
		if !found || e.next < smallest.next {
			smallest, found = e, true
		}
	}
	return smallest, firsts, found
}

// candidateEntry returns the entry that a Peek assumes for a cabinet with unacknowledged events.
func (m *model) candidateEntry(s *modelState, a *actor, l *cabinetHead, c int, entries *catalog) modelEntry {
	at, number := &a.gate.at[c], uint8(c) //nolint:gosec // a cabinet
	if l.tailLen() > 0 && (at.sequence >= l.pagedSequence || !m.hasRule(pagesBeforeTail)) {
		for _, r := range l.tail {
			if r.number > at.sequence {
				return modelEntry{drawer: l.drawer, cabinet: number, next: r.number, version: noSuchUpdate}
			}
		}
	}
	if !m.AnyEntry && a.found[c] > 0 {
		return modelEntry{drawer: lookedUp, cabinet: number, next: a.found[c], version: noSuchUpdate}
	}
	unknown := modelEntry{cabinet: number}
	e, found := smallestEntry([cabinets]*catalog{entries, {}}, func(e modelEntry) bool { return e.cabinet == number })
	if !found || m.InOrder {
		return unknown
	}
	if d, _ := s.cabinets[c].current.find(e.drawer); !m.AnyEntry && d.ordinal != max(at.ordinal, l.floor, 1) {
		return unknown
	}
	return e
}

// returnNoData adds the step of a Peek that finds no event.
func (m *model) returnNoData(s, t *modelState, a *actor) *violation {
	if !m.Lenient && !a.wasOpen && s.bundles.current.gate.version == a.gate.version {
		for c := range cabinets {
			if next, ok := s.history.nextOf(c); ok && a.smallest[c] == next.number {
				return m.newViolation("H10: a Peek returned no data, though events were visible before it began", "Peek: no data")
			}
		}
	}
	a.restartOperation(a.operation + 1)
	a.bundle = 0
	m.takeWith(t, noData, "Peek: no data")
	return nil
}
