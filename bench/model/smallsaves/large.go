package smallsaves

// planIntent returns an intent that saves events on top of h. It uses the free slots of the last
// drawers, and new drawers where the last drawers are full.
func (m *model) planIntent(h *headDocument, events []uint8, writer, incarnation uint8) saveIntent {
	it := saveIntent{low: h.reserved + 1, high: h.reserved + uint8(len(events)), writer: writer, incarnation: incarnation} //nolint:gosec // at most three events
	cabinets := h.cabinets
	for _, r := range numberEvents(events, h.reserved) {
		p := m.partFor(&it, &cabinets, uint8(cabinetOf(r.event))) //nolint:gosec // a cabinet
		p.events[p.n] = r
		p.n++
	}
	return it
}

// partFor returns the part of the intent that has room for an event of a cabinet, or a new
// part.
func (m *model) partFor(it *saveIntent, heads *[cabinets]cabinetHead, c uint8) *reservedPart {
	first := true
	for i := len(it.all()) - 1; i >= 0; i-- {
		p := &it.parts[i]
		if p.cabinet == c && p.end() < m.Capacity {
			return p
		}
		first = first && p.cabinet != c
	}
	p, l := &it.parts[it.n], &heads[c]
	it.n++
	if first && l.drawer != 0 && l.fill < m.Capacity {
		*p = reservedPart{cabinet: c, drawer: l.drawer, ordinal: l.ordinal, from: l.fill}
		return p
	}
	l.ordinal++
	*p = reservedPart{cabinet: c, ordinal: l.ordinal, isNew: true}
	return p
}

// nameDrawers assigns ids to the new drawers of the intent, and reports whether the model has
// enough ids.
func (it *saveIntent) nameDrawers(made *uint8) bool {
	for i := range it.all() {
		if p := &it.parts[i]; p.isNew {
			*made++
			p.drawer = *made
		}
	}
	return *made < maxDrawers
}

// addReserveSteps adds the step of the conditional write that records the intent.
func (m *model) addReserveSteps(s *modelState, i int) {
	w, t := &s.writers[i], *s
	u := &t.writers[i]
	if s.head.current.version != w.headVersion {
		u.startOver()
		u.refused = true
		m.addStep(&t, "reserve: the head has changed")
		return
	}
	it, h := w.plan, s.head.current
	if !it.nameDrawers(&t.drawersMade) {
		m.cut++
		return
	}
	if w.flushed {
		h = w.head
	}
	if !m.hasRule(knowTails) {
		for c := range h.cabinets {
			h.cabinets[c].tail, h.cabinets[c].paged = [maxTail]numberedEvent{}, h.cabinets[c].fill
		}
	}
	h.reserved, h.intent = it.high, it
	m.replaceHead(&t, h, 0)
	u.plan, u.headVersion, u.step, u.flushed, u.head = it, t.head.current.version, writePages, false, headDocument{}
	m.addWriteStep(s, &t, "RESERVE %d..%d", it.low, it.high)
}

// writePages adds the steps by which a page of the plan is created.
func (m *model) writePages(s *modelState, i int) {
	for j, p := range s.writers[i].unfinishedParts() {
		t := *s
		written := s.pages[p.drawer].current
		there := written.pageFrom(p.from)
		if there != nil && there.writer != s.writers[i].plan.low {
			t.writers[i].startOver()
			m.addStep(&t, "page D%d/%d is another's", p.drawer, p.from)
			continue
		}
		if t.writers[i].finishPart(j) {
			t.writers[i].step = countDrawers
		}
		if there != nil {
			m.addStep(&t, "page D%d/%d is its own", p.drawer, p.from)
			continue
		}
		written.add(slotPage{writer: s.writers[i].plan.low, from: p.from, n: p.n, events: p.events})
		t.pages[p.drawer].write(written, m.Versions)
		m.addWriteStep(s, &t, "PAGE D%d/%d..%d", p.drawer, p.from, p.end())
	}
}

// countDrawers adds the steps by which a drawer of the plan is created or counted.
func (m *model) countDrawers(s *modelState, i int) {
	for j, p := range s.writers[i].unfinishedParts() {
		t := *s
		c := s.cabinets[p.cabinet].current
		d, there := c.find(p.drawer)
		switch {
		case !there:
			d = drawerDocument{id: p.drawer, first: p.events[0].number, ordinal: p.ordinal}
		case d.sealed:
			t.writers[i].startOver()
			m.addStep(&t, "count: D%d is sealed", p.drawer)
			continue
		case d.count == p.end():
			m.finishCount(&t.writers[i], j, p.isNew || d.position >= p.from)
			m.addStep(&t, "count: D%d counts %d already", p.drawer, d.count)
			continue
		case d.count != p.from && (!m.CountWhenLeft || d.count >= p.from):
			t.writers[i].startOver()
			m.addStep(&t, "count: D%d counts %d", p.drawer, d.count)
			continue
		}
		m.finishCount(&t.writers[i], j, !there || d.position >= p.from)
		d.count = p.end()
		c.put(d)
		t.cabinets[p.cabinet].write(c, m.Versions)
		m.addWriteStep(s, &t, "COUNT D%d to %d", p.drawer, d.count)
	}
}

// finishCount records that part j is counted, and whether the entry of the part is due.
func (m *model) finishCount(w *writerProcess, j int, due bool) {
	if due {
		w.due |= 1 << j
	}
	if !w.finishPart(j) {
		return
	}
	w.step = writeEntries
	if w.due == 0 {
		w.step = commit
	}
}

// writeEntries adds the steps by which entries of the catalog are written: all entries of a domain
// in one batch.
func (m *model) writeEntries(s *modelState, i int) {
	w := &s.writers[i]
	if !m.hasRule(chooseCandidates) {
		for j := range w.plan.all() {
			if w.due>>j&1 == 1 {
				m.writeEntryBatch(s, i, m.domainOf(int(w.plan.parts[j].cabinet)), 1<<j)
			}
		}
		return
	}
	for domain := range cabinets {
		var batch uint8
		for j, p := range w.plan.all() {
			if m.domainOf(int(p.cabinet)) == domain {
				batch |= w.due & (1 << j)
			}
		}
		if batch != 0 {
			m.writeEntryBatch(s, i, domain, batch)
		}
	}
}

// writeEntryBatch adds the steps by which the entries of some parts are written.
func (m *model) writeEntryBatch(s *modelState, i, domain int, batch uint8) {
	t := *s
	w, c := &t.writers[i], s.catalogs[domain].current
	for j, p := range w.plan.all() {
		if batch>>j&1 == 1 {
			c.put(modelEntry{drawer: p.drawer, cabinet: p.cabinet, next: p.events[0].number})
		}
	}
	t.catalogs[domain].write(c, m.Versions)
	if w.due &^= batch; w.due == 0 {
		w.step = commit
	}
	m.addWriteStep(s, &t, "ENTRIES of domain %d", domain)
}

// commitTo makes the events of the intent visible in h.
func (it *saveIntent) commitTo(h *headDocument) {
	h.watermark = it.high
	for _, p := range it.all() {
		l := &h.cabinets[p.cabinet]
		if p.ordinal < l.ordinal {
			continue
		}
		number := p.events[p.n-1].number
		*l = cabinetHead{
			drawer: p.drawer, fill: p.end(), ordinal: p.ordinal, sequence: number, paged: p.end(), pagedSequence: number,
			floor: l.floor, closed: l.closed,
		}
	}
	h.intent = saveIntent{}
}

// records returns the events of the intent.
func (it *saveIntent) records() (all []numberedEvent) {
	for _, p := range it.all() {
		all = append(all, p.events[:p.n]...)
	}
	return all
}

// addCommitSteps adds the steps of the conditional write that makes a large Save visible.
func (m *model) addCommitSteps(s *modelState, i int, j *job) *violation {
	w, t := &s.writers[i], *s
	current := &s.head.current
	if current.version != w.headVersion {
		if !m.hasRule(idsDecide) && current.watermark >= w.plan.high && current.intent.low != w.plan.low {
			return m.addSuccessStep(&t, i, j, "commit: refused, but the watermark has moved, Save succeeds")
		}
		m.startOver(s, i, "commit: the head has changed")
		return nil
	}
	h := *current
	h.version++ // replaceHead also increments the version, but here the same write may contain the next Save
	w.plan.commitTo(&h)
	format, args := "COMMIT up to %d, next %v", []any{h.watermark, []uint8(nil)}
	if message := t.history.add(w.plan.records()); message != "" {
		return m.newViolation(message, format, args...)
	}
	m.recordSuccess(&t, i, j)
	if m.MergeCommits {
		fresh, message := m.mergeNextBatch(&t, i, &h)
		args[1] = fresh
		if message != "" {
			return m.newViolation(message, format, args...)
		}
	}
	m.replaceHead(&t, h, 0)
	m.loseSaveReply(s, &t, format, args...)
	if v := m.checkAnswers(&t, format, args...); v != nil {
		return v
	}
	m.addStep(&t, format, args...)
	return nil
}

// mergeNextBatch adds the next batch of writer i to h, which commits the previous batch. The next
// batch is a small Save if its events fit, and otherwise an intent. It returns the events of the
// batch, and the rule that is violated, or "".
func (m *model) mergeNextBatch(t *modelState, i int, h *headDocument) (fresh []uint8, message string) {
	next := m.jobOf(&t.writers[i])
	if next == nil {
		return nil, ""
	}
	for _, e := range next.events {
		if t.history.committed>>e&1 == 0 {
			fresh = append(fresh, e)
		}
	}
	if len(fresh) == 0 {
		return nil, ""
	}
	if m.Tail > 0 && !next.large {
		with, made := *h, t.drawersMade
		if found, _ := m.appendTo(&with, fresh, &made, 0); found == fits && made < maxDrawers {
			low := h.reserved
			*h, t.drawersMade = with, made
			message = t.history.add(numberEvents(fresh, low))
			m.recordSuccess(t, i, next)
			return fresh, message
		}
	}
	if next.flush || next.sweep || m.isObstructed(h, fresh) || t.drawersMade+2 >= maxDrawers {
		return nil, ""
	}
	w := &t.writers[i]
	it := m.planIntent(h, fresh, w.id, w.incarnation)
	it.nameDrawers(&t.drawersMade)
	h.reserved, h.intent = it.high, it
	w.plan, w.headVersion, w.step = it, h.version, writePages
	return fresh, ""
}

// isObstructed reports whether a flush must precede the reservation of events on h.
func (m *model) isObstructed(h *headDocument, events []uint8) bool {
	for _, e := range events {
		l := &h.cabinets[cabinetOf(e)]
		if l.tailLen() > 0 || m.CountWhenLeft && l.drawer != 0 && l.fill == m.Capacity {
			return true
		}
	}
	return false
}
