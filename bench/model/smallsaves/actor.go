package smallsaves

// stepActor adds the steps that actor i can take from s to execute the next of its operations. If
// crashes is true, the actor may also crash.
func (m *model) stepActor(s *modelState, i int, operations []uint8, crashes bool) *violation {
	a := &s.actors[i]
	if !a.working || int(a.operation) >= len(operations) {
		return nil
	}
	m.name = [...]string{"A0", "A1"}[i]
	if crashes && s.crashes > 0 && a.step != begin {
		t := *s
		t.crashes--
		t.actors[i].restartOperation(a.operation)
		m.addStep(&t, "CRASH")
	}
	switch a.step {
	case begin:
		return m.beginOperation(s, i, operations)
	case readGate:
		return m.readGate(s, i)
	case confirmGate:
		return m.confirmGate(s, i)
	case readAgain:
		return m.readAgain(s, i)
	case choose:
		return m.addChooseSteps(s, i)
	case compose:
		m.addComposeSteps(s, i)
	case repairEntry:
		m.repairEntry(s, i)
	case openBundle:
		return m.openBundle(s, i)
	case readBundle:
		return m.readBundle(s, i)
	case dequeue:
		return m.addDequeueSteps(s, i)
	case raisePosition:
		m.raisePosition(s, i)
	case updateEntry:
		m.updateEntry(s, i)
	case closeBundle:
		m.closeBundle(s, i)
	}
	return nil
}

// beginOperation records the observations that the checks need, and takes the first step of the
// operation.
func (m *model) beginOperation(s *modelState, i int, operations []uint8) *violation {
	t := *s
	a := &t.actors[i]
	a.dequeued, a.wasOpen = s.history.dequeued, s.bundles.current.gate.open != 0
	for c := range cabinets {
		next, _ := s.history.nextOf(c)
		a.smallest[c] = next.number
	}
	a.step = readGate
	if operations[a.operation] == dequeueOperation {
		if a.bundle == 0 {
			a.restartOperation(a.operation + 1)
			m.addStep(&t, "nothing to dequeue")
			return nil
		}
		a.step = readBundle
	}
	return m.stepActor(&t, i, operations, false)
}

// repeatsDequeued returns the violation that a Peek returns a bundle whose Dequeue was answered
// before the Peek began.
func (m *model) repeatsDequeued(a *actor, id uint8, format string, args ...any) *violation {
	if a.dequeued>>id&1 == 1 {
		return m.newViolation("H6: a Peek repeats a bundle whose Dequeue was answered before the Peek began", format, args...)
	}
	return nil
}

// readGate adds the steps of a Peek that reads the gate.
func (m *model) readGate(s *modelState, i int) *violation {
	for b, cost := range s.bundles.reads(s.staleReads) {
		t := *s
		t.staleReads -= cost
		a := &t.actors[i]
		id := b.gate.open
		switch {
		case id == 0:
			a.gate, a.step = b.gate, choose
			m.addStep(&t, "Peek: gate v%d (%d stale) is closed", b.gate.version, cost)
		case b.all[id].state != open:
			a.targetID, a.target, a.purpose = id, b.all[id], finishOther
			a.startHints()
			m.addStep(&t, "Peek: B%d (%d stale) is half dequeued", id, cost)
		default:
			a.bundle, a.gate, a.target, a.step = id, b.gate, b.all[id], readAgain
			if m.hasRule(confirmOpen) {
				a.step = confirmGate
				m.addStep(&t, "Peek: gate v%d (%d stale) says that B%d is open", b.gate.version, cost, id)
				continue
			}
			if v := m.repeatsDequeued(a, id, "Peek returns B%d", id); v != nil {
				return v
			}
			m.addStep(&t, "Peek returns B%d (%d stale)", id, cost)
		}
	}
	return nil
}

// confirmGate adds the step by which a Peek verifies that its bundle is still open.
func (m *model) confirmGate(s *modelState, i int) *violation {
	t := *s
	a := &t.actors[i]
	if s.bundles.current.gate.version != a.gate.version {
		a.step = readGate
		m.addStep(&t, "confirm: the gate has changed")
		return nil
	}
	b := s.bundles.current
	b.gate.version++
	t.bundles.write(b, m.Versions)
	if v := m.repeatsDequeued(a, a.bundle, "CONFIRM, Peek returns B%d", a.bundle); v != nil {
		return v
	}
	a.step = readAgain
	m.addStep(&t, "CONFIRM, Peek returns B%d", a.bundle)
	return nil
}

// readAgain adds the steps by which a Peek reads the events of an open bundle again, from any
// versions of the head and of the pages.
func (m *model) readAgain(s *modelState, i int) *violation {
	b := s.actors[i].target
	for h, cost := range s.head.reads(s.staleReads) {
		for _, view := range m.readPagesOf(s, &b, cost) {
			events, ok := m.eventsOf(&b, &h.cabinets[b.cabinet], view.pages)
			if !ok && view.cost == 0 {
				return m.newViolation("H6: an open bundle cannot be read again", "Peek again")
			}
			if !ok {
				continue
			}
			if events != b.events {
				return m.newViolation("H6: a repeated bundle has other events", "Peek again reads %v", events[:b.n])
			}
			t := *s
			t.staleReads -= view.cost
			t.actors[i].restartOperation(t.actors[i].operation + 1)
			m.addStep(&t, "Peek again reads %v (%d stale)", events[:b.n], view.cost)
		}
	}
	return nil
}

// A pagesView is one possible result of reading the pages of several drawers.
type pagesView struct {
	cost  uint8
	pages []*pages
}

// readPagesOf returns every possible result of reading the pages of the ranges of b.
func (m *model) readPagesOf(s *modelState, b *peekedBundle, cost uint8) []pagesView {
	views := []pagesView{{cost: cost}}
	for _, r := range b.allRanges() {
		views = readPages(s, r.drawer, views)
	}
	return views
}

// readPages extends each view by every possible result of reading the pages of a drawer.
func readPages(s *modelState, drawer uint8, views []pagesView) (all []pagesView) {
	for _, v := range views {
		for p, cost := range s.pages[drawer].reads(s.staleReads - v.cost) {
			all = append(all, pagesView{v.cost + cost, append(v.pages[:len(v.pages):len(v.pages)], p)})
		}
	}
	return all
}

// eventsOf returns the events of b from pages and the tail of l, in order; ok is false if
// a read was stale.
func (m *model) eventsOf(b *peekedBundle, l *cabinetHead, view []*pages) (events [4]numberedEvent, ok bool) {
	n := 0
	for j, r := range b.allRanges() {
		last := l.drawer == r.drawer
		if m.hasRule(rejectOldHead) && (last && l.fill < r.to || r.ordinal > l.ordinal) {
			return events, false
		}
		for slot := r.from; slot < r.to; slot++ {
			var found numberedEvent
			if !last || slot < l.paged {
				found, ok = view[j].event(slot)
			} else if found, ok = l.inTail(slot); !m.hasRule(rejectOldHead) {
				ok = int(slot-l.paged) < maxTail
			}
			if !ok {
				return events, false
			}
			events[n] = found
			n++
		}
	}
	return events, true
}
