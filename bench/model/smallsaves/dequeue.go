package smallsaves

import "slices"

// wholeDrawer is the end of a range that extends to the end of its drawer.
const wholeDrawer = 255

// repairEntry adds the step of the conditional write that raises or deletes an entry.
func (m *model) repairEntry(s *modelState, i int) {
	t := *s
	a := &t.actors[i]
	domain := m.domainOf(int(a.entry.cabinet))
	c := s.catalogs[domain].current
	e, _ := c.find(a.entry.drawer)
	switch {
	case e.version != a.entry.version:
		m.addStep(&t, "repair: entry D%d has changed", a.entry.drawer)
	case a.raise == 0:
		c.remove(a.entry.drawer)
		t.catalogs[domain].write(c, m.Versions)
		m.addStep(&t, "REPAIR deletes entry D%d", a.entry.drawer)
	default:
		raised := a.entry
		raised.next = a.raise
		c.put(raised)
		t.catalogs[domain].write(c, m.Versions)
		m.addStep(&t, "REPAIR raises entry D%d to %d", a.entry.drawer, a.raise)
	}
	m.steps[len(m.steps)-1].state.actors[i].peekAgain(choose)
}

// openBundle adds the steps of the batch that creates a bundle and replaces the gate.
func (m *model) openBundle(s *modelState, i int) *violation {
	t := *s
	a := &t.actors[i]
	if s.bundles.current.gate.version != a.gate.version {
		a.peekAgain(readGate)
		m.addStep(&t, "bundle: the gate has changed")
		return nil
	}
	if t.bundlesMade+1 >= maxBundles {
		m.cut++
		return nil
	}
	t.bundlesMade++
	id, next := t.bundlesMade, a.next
	b := s.bundles.current
	b.all[id] = next
	b.gate.version++
	b.gate.open = id
	t.bundles.write(b, m.Versions)
	format, args := "BUNDLE B%d of cabinet %d: %v", []any{id, next.cabinet, next.all()}
	if message := m.checkBundle(s, &next, a); message != "" {
		return m.newViolation(message, format, args...)
	}
	t.history.bundled[next.cabinet] += next.n
	m.loseReply(s, &t, format, args...)
	a.restartOperation(a.operation + 1)
	a.bundle = id
	m.addStep(&t, format, args...)
	return nil
}

// checkBundle returns the rule that the opening of bundle b by an actor violates, or "" if the
// bundle is valid.
func (m *model) checkBundle(s *modelState, b *peekedBundle, a *actor) string {
	c, h := int(b.cabinet), &s.history
	done := h.bundled[c]
	for n, got := range b.all() {
		if at := int(done) + n; at < int(h.logged[c]) && h.log[c][at] == got {
			continue
		}
		switch {
		case slices.Contains(h.log[c][:done], got):
			return "H2, H6: a bundle composed of acknowledged events was opened"
		case !slices.Contains(h.committedOf(c), got):
			return "H2, H5: a bundle holds an event that was never committed"
		}
		return "H3: a bundle leaves out committed events of its cabinet"
	}
	for other := range cabinets {
		next, ok := h.nextOf(other)
		if other == c || !ok {
			continue
		}
		if m.InOrder && next.number < b.events[b.n-1].number {
			return "H3: a smaller number of the recipient waits in another cabinet"
		}
		if (!m.Lenient || m.Choice) && a.smallest[other] == next.number && next.number < b.events[0].number {
			return "H4: a smaller number was visible in another cabinet when the Peek began"
		}
	}
	return ""
}

// readBundle adds the steps of a Dequeue that reads its bundle.
func (m *model) readBundle(s *modelState, i int) *violation {
	budget := s.staleReads
	if m.Fresh {
		budget = 0
	}
	for b, cost := range s.bundles.reads(budget) {
		t := *s
		t.staleReads -= cost
		a := &t.actors[i]
		id := a.bundle
		a.targetID, a.target, a.purpose = id, b.all[id], finishOwn
		switch a.target.state {
		case open:
			a.step = dequeue
			m.addStep(&t, "Dequeue B%d reads it open", id)
		case dequeuing:
			a.startHints()
			m.addStep(&t, "Dequeue B%d finds it half dequeued", id)
		case absent, closed:
			if !m.Lenient && s.history.dequeued>>id&1 == 0 {
				return m.newViolation("H7: a Dequeue of an open bundle returned not found", "Dequeue B%d", id)
			}
			a.restartOperation(a.operation + 1)
			m.addStep(&t, "Dequeue B%d: there is none (%d stale)", id, cost)
		}
	}
	return nil
}

// addDequeueSteps adds the steps of the batch that acknowledges a bundle.
func (m *model) addDequeueSteps(s *modelState, i int) *violation {
	t := *s
	a := &t.actors[i]
	all := s.bundles.current
	b, id := &all.all[a.targetID], a.targetID
	if b.version != a.target.version {
		a.step = readBundle
		m.addStep(&t, "dequeue: the bundle has changed")
		return nil
	}
	b.version++
	b.state = dequeuing
	if m.hasRule(dequeueAtOnce) {
		if all.gate.open != id {
			return m.newViolation("H6: the gate is not on the bundle that is dequeued", "Dequeue B%d", id)
		}
		b.state = closed
		all.gate.open = 0
		all.gate.version++
		all.gate.advance(b)
	}
	t.bundles.write(all, m.Versions)
	t.history.dequeued |= 1 << id
	t.history.acked[b.cabinet] += b.n
	a.target = *b
	a.startHints()
	m.addWriteStep(s, &t, "DEQUEUE B%d", id)
	return nil
}

// finishHints continues with the next range of the target, or ends the update of the hints.
func (m *model) finishHints(a *actor) {
	switch {
	case a.rangeNo+1 < a.target.nRanges:
		a.rangeNo++
		a.drawer, a.step = drawerDocument{}, raisePosition
	case a.purpose == healEntry:
		a.peekAgain(readGate)
	case m.hasRule(dequeueAtOnce):
		a.restartOperation(a.operation + 1)
	default:
		a.step = closeBundle
	}
}

// positionIn returns the required position in d after r is acknowledged.
func (r *slotRange) positionIn(d *drawerDocument) uint8 {
	if r.to == wholeDrawer {
		return d.count
	}
	return r.to
}

// raisePosition adds the steps that read the position of the next drawer and raise it if it is too
// low.
func (m *model) raisePosition(s *modelState, i int) {
	a := &s.actors[i]
	r, c := &a.target.ranges[a.rangeNo], a.target.cabinet
	truth, there := s.cabinets[c].current.find(r.drawer)
	if !there {
		t := *s
		m.finishHints(&t.actors[i])
		m.addStep(&t, "hints: D%d has no document", r.drawer)
		return
	}
	if to := r.positionIn(&truth); truth.position < to {
		t := *s
		truth.position = to
		drawers := s.cabinets[c].current
		drawers.put(truth)
		t.cabinets[c].write(drawers, m.Versions)
		t.actors[i].drawer, t.actors[i].step = truth, updateEntry
		m.addWriteStep(s, &t, "POSITION D%d is %d", r.drawer, to)
	}
	for view, cost := range s.cabinets[c].reads(s.staleReads) {
		d, seen := view.find(r.drawer)
		if !seen || d.position < r.positionIn(&d) || a.purpose == healEntry && cost > 0 {
			continue
		}
		t := *s
		t.staleReads -= cost
		t.actors[i].drawer, t.actors[i].step = d, updateEntry
		m.addStep(&t, "hints: position of D%d is %d (%d stale)", r.drawer, d.position, cost)
	}
}

// updateEntry adds the steps by which the entry of the next drawer is raised to its first
// unacknowledged event, or deleted.
func (m *model) updateEntry(s *modelState, i int) {
	t := *s
	a := &t.actors[i]
	r, c, d := a.target.ranges[a.rangeNo], a.target.cabinet, a.drawer
	domain := m.domainOf(int(c))
	entries := s.catalogs[domain].current
	e, there := entries.find(r.drawer)
	waiting, found := s.pages[r.drawer].current.event(d.position)
	switch {
	case d.count > d.position && !found:
		return // a sweep has removed the drawer's pages
	case d.count > d.position && (!there || e.next < waiting.number):
		entries.put(modelEntry{drawer: r.drawer, cabinet: c, next: waiting.number})
	case d.count <= d.position && there && (e.next <= r.number || m.Fresh && d.sealed):
		entries.remove(r.drawer)
	default:
		m.finishHints(a)
		m.addStep(&t, "hints: entry D%d is right", r.drawer)
		return
	}
	t.catalogs[domain].write(entries, m.Versions)
	m.finishHints(a)
	m.addWriteStep(s, &t, "ENTRY D%d", r.drawer)
}

// closeBundle adds the steps that close a half-dequeued bundle and advance the gate. Only scenarios
// without dequeueAtOnce have such a bundle.
func (m *model) closeBundle(s *modelState, i int) {
	t := *s
	a := &t.actors[i]
	id, purpose := a.targetID, a.purpose
	if purpose == finishOther {
		a.peekAgain(readGate)
	} else {
		a.restartOperation(a.operation + 1)
	}
	all := s.bundles.current
	b := &all.all[id]
	if b.state != dequeuing {
		m.addStep(&t, "B%d is closed already", id)
		return
	}
	b.state = closed
	b.version++
	if all.gate.open == id {
		all.gate.open = 0
	}
	all.gate.advance(b)
	all.gate.version++
	t.bundles.write(all, m.Versions)
	m.addWriteStep(s, &t, "CLOSE B%d", id)
}
