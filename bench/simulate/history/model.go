package history

import "slices"

// maxWeight is the limit for the weight of a bundle of several events, in KB.
const maxWeight = 50 * 1024

// A hubModel decides which steps a correct hub can take.
type hubModel struct {
	*nameTable
	Options
	blind bool // true if the rest of the history is not used, so that the search fails exactly at the wrong step
}

// applyStep returns the mailbox after a step, or nil if a correct hub in state m would have returned a different
// answer.
func (t *hubModel) applyStep(m *mailbox, s *modelStep) *mailbox {
	switch {
	case s.kind == send && s.outcome == Rejected:
		return m
	case s.kind == send:
		return t.applySend(m, s)
	case s.kind == peek && s.outcome == Returned:
		return t.applyShown(m, s)
	case s.kind == peek && s.outcome == None:
		return t.applyNone(m, s)
	case s.kind == dequeue:
		return t.applyDequeue(m, s)
	}
	return m
}

// applySend applies a Send: it appends all new events in one step.
func (t *hubModel) applySend(m *mailbox, s *modelStep) *mailbox {
	var tally Tally
	lost := false
	next := m.withChange(func(next *mailbox) {
		for _, e := range s.sent {
			switch next.seen[e.id] {
			case 0:
				next.seen[e.id] = e.content
				lost = lost || !t.appendEvent(next, e.id)
				tally.Accepted++
			case e.content:
				tally.Duplicates++
			default:
				tally.Conflicts++
			}
		}
	})
	if lost || s.tally != nil && *s.tally != tally {
		return nil
	}
	return next
}

// applyShown applies a Peek that returned a bundle: the bundle is already open, or this step opens it.
func (t *hubModel) applyShown(m *mailbox, s *modelStep) *mailbox {
	b := &t.bundles[s.bundle]
	if !requestsGroup(s, b.Group) {
		return nil
	}
	if i := slices.IndexFunc(m.open, func(o openedBundle) bool { return o.bundle == s.bundle }); i >= 0 {
		if !t.isOldest(m, s, i) {
			return nil
		}
		return m
	}
	from := int64(forever)
	if t.canOpen(m, s, b) {
		from = s.call
	}
	// A different Peek may have opened the bundle that s returned: a Peek without an answer, or a Peek whose bundle was
	// dequeued before the Peek was answered.
	for _, u := range t.peeks {
		if u.call <= s.done && s.call <= u.done && u.call < from && t.canOpen(m, u, b) {
			from = u.call
		}
	}
	if from == forever {
		return nil
	}
	next := m.withChange(func(next *mailbox) {
		next.used[b.id] = 1
		next.open = append(next.open, openedBundle{s.bundle, from, s.done})
	})
	if from < s.call && !t.canOpen(m, s, b) && !t.isOldest(next, s, len(next.open)-1) {
		return nil
	}
	return next
}

// requestsGroup reports whether a Peek requests a group.
func requestsGroup(s *modelStep, group string) bool {
	return len(s.groups) == 0 || slices.Contains(s.groups, group)
}

// isOldest reports whether Peek s may return m.open[i] as the bundle that has been open longest. It may not if s also
// requests the group of an earlier bundle of m.open, and that bundle was certainly opened before m.open[i] was opened
// and before s began.
func (t *hubModel) isOldest(m *mailbox, s *modelStep, i int) bool {
	if t.AnyOpen || t.StaleReads {
		return true
	}
	for _, older := range m.open[:i] {
		if requestsGroup(s, t.bundles[older.bundle].Group) && older.to < s.call && older.to < m.open[i].from {
			return false
		}
	}
	return true
}

// canOpen reports whether Peek s may open bundle b.
func (t *hubModel) canOpen(m *mailbox, s *modelStep, b *shownBundle) bool {
	if m.used[b.id] != 0 || !requestsGroup(s, b.Group) {
		return false
	}
	for _, o := range m.open {
		switch group := t.bundles[o.bundle].Group; {
		case group == b.Group:
			return false
		case requestsGroup(s, group) && o.to < s.call && !t.StaleReads:
			return false // the group has an open bundle, which s should have returned
		}
	}
	return t.isFront(m, s, b)
}

// isFront reports whether s may return the events of b as a new bundle. They must be the first waiting events of their
// cabinet, begin with the first event that s may return, and fit into one bundle.
func (t *hubModel) isFront(m *mailbox, s *modelStep, b *shownBundle) bool {
	var weight int64
	n := 0 // number of events of b found so far
	for _, id := range m.waiting {
		e := t.eventOf(m, id)
		switch {
		case n == 0 && !requestsGroup(s, e.Group):
			continue
		case n > 0 && e.Cabinet != b.Cabinet:
			continue
		case len(b.events) == n:
			return n > 0
		}
		weight += e.Weight
		fits := n == 0 || e.Bundleable && weight <= maxWeight && t.eventOf(m, b.events[0]).Bundleable
		if b.events[n] != id || e.Cabinet != b.Cabinet || e.Group != b.Group || !fits {
			return false
		}
		n++
	}
	return n > 0 && n == len(b.events)
}

// applyNone applies a Peek that returned no data. It returns nil if s should have returned a bundle, because a bundle is
// open or an event was stored before s began.
func (t *hubModel) applyNone(m *mailbox, s *modelStep) *mailbox {
	if t.StaleReads {
		return m
	}
	for _, o := range m.open {
		if requestsGroup(s, t.bundles[o.bundle].Group) {
			return nil
		}
	}
	for _, id := range m.waiting {
		if e := t.eventOf(m, id); requestsGroup(s, e.Group) && t.stored[id] < s.call {
			return nil
		}
	}
	for id, content := range m.seen { // includes events that are not in waiting because they are in no bundle
		if content > 0 && t.fates[id].bundles == 0 && requestsGroup(s, t.eventOf(m, id).Group) && t.stored[id] < s.call {
			return nil
		}
	}
	return m
}

// applyDequeue removes the events of the open bundle.
func (t *hubModel) applyDequeue(m *mailbox, s *modelStep) *mailbox {
	i := slices.IndexFunc(m.open, func(o openedBundle) bool { return t.bundles[o.bundle].id == s.id })
	switch {
	case i < 0 && s.outcome == Done, i >= 0 && s.outcome == NotFound:
		return nil
	case i < 0:
		return m
	}
	b := &t.bundles[m.open[i].bundle]
	return m.withChange(func(next *mailbox) {
		next.open = slices.Delete(next.open, i, i+1)
		next.waiting = slices.DeleteFunc(next.waiting, func(id int) bool { return slices.Contains(b.events, id) })
	})
}
