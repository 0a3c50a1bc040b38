package smallsaves

import (
	"cmp"
	"slices"
)

// A composition is the result of a Peek that has read the drawers of a cabinet.
type composition struct {
	verdict entryVerdict
	bundle  peekedBundle
	drawer  uint8 // drawer that is sealed, or whose entry is repaired
	raise   uint8 // new number of the entry; 0 deletes the entry
}

type entryVerdict uint8

const (
	tooOld entryVerdict = iota
	composed
	sealFirst
	heal
	repair
)

// addComposeSteps adds the steps of a Peek that reads the drawers and pages of the chosen cabinet.
func (m *model) addComposeSteps(s *modelState, i int) {
	a := &s.actors[i]
	c := a.entry.cabinet
	for view, cost := range s.cabinets[c].reads(s.staleReads) {
		var ids []uint8
		for _, d := range view.drawers {
			if d.id != 0 {
				ids = append(ids, d.id)
			}
		}
		if last := a.head.cabinets[c].drawer; last != 0 && !slices.Contains(ids, last) {
			ids = append(ids, last)
		}
		ways := []pagesView{{cost: cost}}
		for _, id := range ids {
			ways = readPages(s, id, ways)
		}
		for _, way := range ways {
			pagesOf := func(id uint8) *pages { return way.pages[slices.Index(ids, id)] }
			m.takeComposition(s, i, way.cost, view, m.composition(a, view, pagesOf))
		}
	}
}

// takeComposition adds the step that follows from the drawers and pages that a Peek has read.
func (m *model) takeComposition(s *modelState, i int, cost uint8, view *cabinetDrawers, found composition) {
	t := *s
	t.staleReads -= cost
	a := &t.actors[i]
	c := a.entry.cabinet
	switch found.verdict {
	case tooOld:
		if cost > 0 {
			return // a step with fewer stale reads has the same result
		}
		a.peekAgain(readGate)
		m.addStep(&t, "Peek: reads do not fit each other, reads again")
	case sealFirst:
		if d, there := s.cabinets[c].current.find(found.drawer); there && !d.sealed {
			m.sealDrawer(&t, drawerRef{int(c), found.drawer})
		}
		a.peekAgain(readGate)
		m.addStep(&t, "Peek: SEAL D%d", found.drawer)
	case heal:
		m.beginHeal(a, view, found.drawer)
		m.addStep(&t, "Peek: entry D%d at %d is low or dead", a.entry.drawer, a.entry.next)
	case repair:
		a.raise, a.step = found.raise, repairEntry
		m.addStep(&t, "Peek: entry D%d at %d is low or dead", a.entry.drawer, a.entry.next)
	case composed:
		b := &found.bundle
		if m.hasRule(chooseCandidates) && (a.entry.drawer == 0 || b.events[0].number > a.entry.next) {
			m.correctEntry(s, &t, a, b)
			return
		}
		a.next, a.step = *b, openBundle
		m.addStep(&t, "Peek: composes %v (%d stale)", b.all(), cost)
	}
}

// beginHeal begins to update the hints of one drawer.
func (m *model) beginHeal(a *actor, view *cabinetDrawers, drawer uint8) {
	d, _ := view.find(drawer)
	at := a.gate.at[a.entry.cabinet]
	r := slotRange{drawer: drawer, ordinal: d.ordinal, to: d.position}
	if m.hasRule(keepPlace) {
		r.number, r.to = at.sequence, 0
		switch {
		case d.ordinal < at.ordinal:
			r.to = wholeDrawer
		case d.ordinal == at.ordinal:
			r.to = at.slot
		}
	}
	a.targetID, a.target, a.purpose = 0, peekedBundle{cabinet: a.entry.cabinet, nRanges: 1, ranges: [maxParts]slotRange{r}}, healEntry
	a.startHints()
}

// correctEntry adds the step by which a Peek repairs a wrong entry and chooses again. An entry is
// wrong if it is missing, is too low, or belongs to a drawer without unacknowledged events.
func (m *model) correctEntry(s, t *modelState, a *actor, b *peekedBundle) {
	first, number := b.ranges[0], b.events[0].number
	if !m.AnyEntry {
		a.found[b.cabinet] = number
	} else {
		a.found[b.cabinet] = 0
	}
	if a.entry.drawer != 0 {
		if d, there := s.cabinets[b.cabinet].current.find(a.entry.drawer); !there || d.ordinal < first.ordinal {
			a.raise, a.step = 0, repairEntry
			m.addStep(t, "Peek: entry D%d at %d is dead", a.entry.drawer, a.entry.next)
			return
		}
	}
	e, there := s.catalogs[m.domainOf(int(b.cabinet))].current.find(first.drawer)
	if there && e.next >= number {
		a.peekAgain(choose)
		m.addStep(t, "Peek: entry D%d is right, chooses again", first.drawer)
		return
	}
	a.entry = modelEntry{drawer: first.drawer, cabinet: b.cabinet, next: number, version: e.version}
	a.raise, a.step = number, repairEntry
	m.addStep(t, "Peek: entry D%d is missing or low", first.drawer)
}

// startIn returns the slot at which the unacknowledged events of d start.
func (m *model) startIn(d *drawerDocument, at cabinetPosition) uint8 {
	switch {
	case !m.hasRule(keepPlace):
		return d.position
	case d.ordinal < at.ordinal:
		return max(d.count, d.position)
	case d.ordinal == at.ordinal:
		return at.slot
	}
	return 0
}

// checkEntry returns the repair that the chosen entry of a Peek needs, if any. Only
// scenarios without chooseCandidates use it.
func (m *model) checkEntry(a *actor, view *cabinetDrawers, pagesOf func(uint8) *pages) (composition, bool) {
	e := a.entry
	d, there := view.find(e.drawer)
	dead := composition{verdict: repair}
	if m.Fresh {
		dead = composition{verdict: heal, drawer: d.id}
	}
	if !there {
		if m.Fresh {
			dead.verdict = tooOld
		}
		return dead, true
	}
	slot := m.startIn(&d, a.gate.at[e.cabinet])
	if slot >= d.count {
		return dead, true
	}
	r, ok := pagesOf(d.id).event(slot)
	if !ok {
		return composition{verdict: tooOld}, true
	}
	if r.number > e.next {
		dead.raise = r.number
		return dead, true
	}
	return composition{}, false
}

// readableDrawers returns the drawers of a cabinet in order, beginning at the position of the gate,
// and the ordinal before the first drawer.
func (m *model) readableDrawers(a *actor, view *cabinetDrawers) (drawers []drawerDocument, before uint8) {
	l, at := &a.head.cabinets[a.entry.cabinet], a.gate.at[a.entry.cabinet]
	start := max(at.ordinal, l.floor, 1)
	for _, d := range view.drawers {
		if d.id != 0 {
			drawers = append(drawers, d)
		}
	}
	if _, there := view.find(l.drawer); !there && l.drawer != 0 && m.hasRule(readHeadDrawer) {
		drawers = append(drawers, drawerDocument{id: l.drawer, ordinal: l.ordinal, count: l.paged})
	}
	drawers = slices.DeleteFunc(drawers, func(d drawerDocument) bool {
		return m.hasRule(keepPlace) && d.ordinal < start || !m.hasRule(keepPlace) && d.position >= d.count
	})
	slices.SortStableFunc(drawers, func(a, b drawerDocument) int {
		if m.hasRule(keepPlace) {
			return cmp.Compare(a.ordinal, b.ordinal)
		}
		return cmp.Compare(a.first, b.first)
	})
	return drawers, start - 1
}

// composition returns the result of a Peek that has read drawers and pages.
func (m *model) composition(a *actor, view *cabinetDrawers, pagesOf func(uint8) *pages) composition {
	if a.entry.drawer != 0 && !m.hasRule(chooseCandidates) {
		if found, wrong := m.checkEntry(a, view, pagesOf); wrong {
			return found
		}
	}
	c := &composer{model: m, actor: a, last: &a.head.cabinets[a.entry.cabinet]}
	c.bundle = peekedBundle{state: open, version: 1, cabinet: a.entry.cabinet}
	drawers, ordinal := m.readableDrawers(a, view)
	sealed, known := true, m.hasRule(keepPlace)
	for i := range drawers {
		d := &drawers[i]
		if known && m.hasRule(denseOrdinals) && d.ordinal != ordinal+1 {
			break
		}
		if known && !sealed {
			if !m.hasRule(keepPlace) {
				return composition{verdict: tooOld}
			}
			break
		}
		switch c.addDrawer(d, pagesOf(d.id)) {
		case unsealed:
			return composition{verdict: sealFirst, drawer: d.id}
		case missing:
			return composition{verdict: tooOld}
		case complete:
			return c.composedResult()
		case goOn:
		}
		ordinal, known = d.ordinal, true
		sealed = d.sealed || !m.hasRule(trustSealedOnly) && d.count == m.Capacity
	}
	return c.composedResult()
}

// A composer fills a bundle.
type composer struct {
	model  *model
	actor  *actor
	last   *cabinetHead
	bundle peekedBundle
}

// An addResult is the result of adding a drawer to a bundle.
type addResult uint8

const (
	goOn addResult = iota
	complete
	missing
	unsealed
)

func (c *composer) composedResult() composition {
	if c.bundle.n == 0 {
		return composition{verdict: tooOld}
	}
	return composition{verdict: composed, bundle: c.bundle}
}

// extentOf returns the number of readable slots in d, and how many of these slots are in pages.
func (c *composer) extentOf(d *drawerDocument) (end, paged uint8, found addResult) {
	m, l := c.model, c.last
	switch {
	case !m.hasRule(trustSealedOnly):
	case l.drawer == d.id:
		end, paged = l.fill, l.paged
		if !m.hasRule(fillFromHead) {
			end, paged = max(end, d.count), d.count
		}
		if !m.hasRule(readTail) {
			paged = end
		}
		return end, paged, goOn
	case d.ordinal > l.ordinal:
		return 0, 0, complete
	case !d.sealed && c.bundle.n == 0:
		return 0, 0, unsealed
	case !d.sealed:
		return 0, 0, complete
	}
	return d.count, d.count, goOn
}

// addDrawer adds as many events of d as the bundle has room for.
func (c *composer) addDrawer(d *drawerDocument, p *pages) addResult {
	m, b := c.model, &c.bundle
	start := m.startIn(d, c.actor.gate.at[b.cabinet])
	end, paged, found := c.extentOf(d)
	if found != goOn {
		return found
	}
	for slot := start; slot < end; slot++ {
		r, there := c.last.inTail(slot)
		if slot < paged {
			r, there = p.event(slot)
		}
		switch {
		case !there && m.hasRule(keepPlace) && b.n > 0:
			return complete
		case !there:
			return missing
		case r.number > c.actor.head.watermark && !m.hasRule(trustSealedOnly),
			c.actor.limit > 0 && r.number >= c.actor.limit,
			b.n >= m.Bundle, slot == start && b.nRanges == maxParts:
			return complete
		}
		if slot == start {
			b.ranges[b.nRanges] = slotRange{drawer: d.id, ordinal: d.ordinal, from: start}
			b.nRanges++
		}
		b.events[b.n] = r
		b.n++
		last := &b.ranges[b.nRanges-1]
		last.to, last.number = slot+1, r.number
	}
	return goOn
}
