package smallsaves

// addClaimSteps adds the steps of the conditional write after which the intent can only be
// rolled back.
func (m *model) addClaimSteps(s *modelState, i int) {
	w, t := &s.writers[i], *s
	if s.head.current.version != w.head.version {
		m.startOver(s, i, "claim: the head has changed")
		return
	}
	h := s.head.current
	h.intent.aborted = true
	m.replaceHead(&t, h, 0)
	u := &t.writers[i]
	u.head, u.plan, u.step = t.head.current, h.intent, sealDrawers
	m.addWriteStep(s, &t, "CLAIM intent %d", h.intent.low)
}

// sealDrawers adds the steps by which a drawer of the intent is sealed at the fill of the
// head, or created empty and sealed.
func (m *model) sealDrawers(s *modelState, i int) {
	for j, p := range s.writers[i].unfinishedParts() {
		t := *s
		if t.writers[i].finishPart(j) {
			t.writers[i].step = clearIntent
		}
		c := s.cabinets[p.cabinet].current
		d, there := c.find(p.drawer)
		if there && d.sealed {
			m.addStep(&t, "D%d is sealed already", p.drawer)
			continue
		}
		if there {
			d.count, d.sealed = p.from, true
		} else {
			d = drawerDocument{id: p.drawer, first: p.events[0].number, sealed: true, ordinal: p.ordinal}
		}
		c.put(d)
		t.cabinets[p.cabinet].write(c, m.Versions)
		m.addWriteStep(s, &t, "SEAL D%d at %d", p.drawer, d.count)
	}
}

// clearIntent adds the steps of the conditional write that ends a rollback.
func (m *model) clearIntent(s *modelState, i int) {
	w, t := &s.writers[i], *s
	if s.head.current.version != w.head.version {
		m.startOver(s, i, "clear: the head has changed")
		return
	}
	h := s.head.current
	it := h.intent
	h.intent = saveIntent{}
	for _, p := range it.all() {
		l := &h.cabinets[p.cabinet]
		l.closeDrawer(max(l.ordinal, p.ordinal))
	}
	m.replaceHead(&t, h, 0)
	t.writers[i].startOver()
	m.addWriteStep(s, &t, "CLEAR intent %d", it.low)
}
