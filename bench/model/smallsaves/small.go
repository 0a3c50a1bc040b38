package smallsaves

import "slices"

// A fit is the result of an attempt to add events to the tails of a head.
type fit uint8

const (
	fits fit = iota
	flushFirst
	leaveFirst
	tooLarge
)

// appendTo adds events to the tails of h, which has no intent, as a small Save does. A
// new drawer exists only in the head. If the events do not fit, it returns the reason
// and the cabinet, and h must not be used.
func (m *model) appendTo(h *headDocument, events []uint8, drawersMade *uint8, left uint8) (fit, uint8) {
	before := h.cabinets
	for _, e := range events {
		c := cabinetOf(e)
		l := &h.cabinets[c]
		if l.drawer == 0 || l.fill == m.Capacity && (l.tailLen() == 0 || !m.hasRule(flushBeforeNewDrawer)) {
			if l.drawer != 0 && m.mustLeave(left, c) {
				return leaveFirst, uint8(c) //nolint:gosec // a cabinet
			}
			*drawersMade++
			l.closeDrawer(l.ordinal + 1)
			l.drawer = *drawersMade
		}
		if l.fill == m.Capacity || l.tailLen() >= min(m.Tail, maxTail) {
			if before[c].tailLen() > 0 {
				return flushFirst, uint8(c) //nolint:gosec // a cabinet
			}
			return tooLarge, 0
		}
		h.reserved++
		l.tail[l.tailLen()] = numberedEvent{e, h.reserved}
		l.fill++
		l.sequence = h.reserved
	}
	h.watermark = h.reserved
	return fits, 0
}

// mustLeave reports whether the full drawer of a cabinet must be sealed before the head may leave
// it.
func (m *model) mustLeave(left uint8, cabinet int) bool {
	return m.CountWhenLeft && m.hasRule(sealLeft) && left>>cabinet&1 == 0
}

// decideSave chooses the next step of writer i from its copy of the head and its fresh events:
// flush a tail without room for the events, save small, or reserve.
func (m *model) decideSave(t *modelState, i int) {
	w := &t.writers[i]
	w.headVersion = w.head.version
	large, obstacle := w.large || m.Tail == 0, -1
	if !large {
		h, made := w.head, t.drawersMade
		switch found, c := m.appendTo(&h, w.events(), &made, w.left); found {
		case fits:
			m.prepareSmall(t, i)
			return
		case leaveFirst:
			w.beginLeave(c)
			return
		case flushFirst:
			obstacle = int(c)
		case tooLarge:
			large = true
		}
	}
	if large && m.hasRule(flushBeforeLarge) && m.hasRule(knowTails) {
		for _, e := range w.events() {
			c := cabinetOf(e)
			l := &w.head.cabinets[c]
			if l.tailLen() > 0 {
				obstacle = c
				break
			}
			if l.drawer != 0 && l.fill == m.Capacity && m.mustLeave(w.left, c) {
				w.beginLeave(uint8(c)) //nolint:gosec // a cabinet
				return
			}
		}
	}
	w.large = large
	if obstacle >= 0 {
		w.beginFlush(uint8(obstacle))
		return
	}
	m.prepareLarge(w)
}

// prepareSmall stores the payloads of a small Save.
func (m *model) prepareSmall(t *modelState, i int) {
	w := &t.writers[i]
	if m.Payloads {
		for _, e := range w.events() {
			t.payloads[i] |= 1 << e
		}
	}
	w.step, w.flush = saveSmall, flush{}
	if !w.flushed && m.hasRule(smallIfMatch) {
		w.head = headDocument{}
	}
}

// prepareLarge plans the intent of a large Save.
func (m *model) prepareLarge(w *writerProcess) {
	next := writerProcess{
		working: true, id: w.id, job: w.job, incarnation: w.incarnation, step: reserve, headVersion: w.head.version,
		plan: m.planIntent(&w.head, w.events(), w.id, w.incarnation), flushed: w.flushed,
	}
	if w.flushed {
		next.head = w.head
	}
	*w = next
}

// operationID names the batch of a writer in the head.
func operationID(i int, w *writerProcess) uint8 { return uint8(1+16*i) + w.job } //nolint:gosec // a process

// saveSmall adds the steps of the one conditional write of a small Save.
func (m *model) saveSmall(s *modelState, i int, j *job) *violation {
	w, current := &s.writers[i], &s.head.current
	expected := current.version == w.headVersion
	switch {
	case !expected && current.operation == operationID(i, w):
		t := *s
		return m.addSuccessStep(&t, i, j, "small Save: refused, but the head bears its operation, Save succeeds")
	case expected || !m.hasRule(smallIfMatch):
		return m.appendSmall(s, i, j)
	case !m.hasRule(idsDecide) && current.watermark >= w.headVersion:
		t := *s
		return m.addSuccessStep(&t, i, j, "small Save: refused, but the watermark has moved, Save succeeds")
	}
	t := *s
	if !m.hasRule(keepPayloads) {
		for _, e := range w.events() {
			t.payloads[i] &^= 1 << e
		}
	}
	t.writers[i].startOver()
	m.addStep(&t, "small Save: the head has changed")
	return nil
}

// appendSmall adds the steps that write the head, with the new events in its tails.
func (m *model) appendSmall(s *modelState, i int, j *job) *violation {
	w, t := &s.writers[i], *s
	h := s.head.current
	if w.flushed || !m.hasRule(smallIfMatch) {
		h = w.head
	}
	low := h.reserved
	m.appendTo(&h, w.events(), &t.drawersMade, w.left)
	if t.drawersMade >= maxDrawers {
		m.cut++
		return nil
	}
	m.replaceHead(&t, h, operationID(i, w))
	const format = "SMALL SAVE %v as %d..%d"
	args := []any{w.events(), low + 1, h.reserved}
	if message := t.history.add(numberEvents(w.events(), low)); message != "" {
		return m.newViolation(message, format, args...)
	}
	if m.Payloads {
		for _, e := range w.events() {
			t.history.payload[e] = uint8(1 + i) //nolint:gosec // a process
		}
	}
	m.recordSuccess(&t, i, j)
	m.loseSaveReply(s, &t, format, args...)
	if v := m.checkAnswers(&t, format, args...); v != nil {
		return v
	}
	m.addStep(&t, format, args...)
	return nil
}

// loseSaveReply is loseReply for the write that completes a Save. If the reply is lost, the Save has not returned, so
// the step does not record that the Save succeeded.
func (m *model) loseSaveReply(s, t *modelState, format string, args ...any) {
	u := *t
	u.history.answered = s.history.answered
	m.loseReply(s, &u, format, args...)
}

// numberEvents returns events with the numbers that follow low.
func numberEvents(events []uint8, low uint8) (records []numberedEvent) {
	for n, e := range events {
		records = append(records, numberedEvent{e, low + 1 + uint8(n)})
	}
	return records
}

// add records that events become visible, and returns the rule that is violated, or "".
func (h *history) add(records []numberedEvent) (message string) {
	slices.SortFunc(records, func(a, b numberedEvent) int { return int(a.number) - int(b.number) })
	for _, r := range records {
		if r.number <= h.top {
			return "H3, H5: a number becomes visible after a higher one"
		}
		h.top = r.number
		if h.committed>>r.event&1 == 1 {
			return "H2: an event is committed twice"
		}
		h.committed |= 1 << r.event
		c := cabinetOf(r.event)
		h.log[c][h.logged[c]] = r
		h.logged[c]++
	}
	return ""
}
