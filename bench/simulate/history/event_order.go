package history

// noteOrder notes for each bundle which events are stored before its first event. A bundle that was shown before
// another bundle of its group was requested was open before it, and is closed.
func (t *nameTable) noteOrder(steps []*modelStep) {
	from, until := make([]int64, len(t.bundles)), make([]int64, len(t.bundles)) // the last begin and the first end of its Peeks
	for i := range t.bundles {
		from[i], until[i] = never, forever
	}
	for _, s := range steps {
		if s.bundle >= 0 {
			from[s.bundle], until[s.bundle] = max(from[s.bundle], s.call), min(until[s.bundle], s.done)
		}
	}
	for i := range t.bundles {
		for j := range t.bundles {
			early, late := &t.bundles[i], &t.bundles[j]
			if i == j || early.Group != late.Group || until[i] >= from[j] {
				continue
			}
			events := early.events
			if early.Cabinet != late.Cabinet {
				events = events[:min(1, len(events))]
			}
			for _, id := range events {
				if id >= 0 {
					late.behind = append(late.behind, id)
				}
			}
		}
	}
}

// appendEvent adds a new event after all waiting ones. It returns false if the rest of the history is then
// impossible. The whole history is known, so this can be decided long before a search would find it:
//
//   - An event that is never shown waits for ever. Later events of its cabinet are never
//     shown either, so only the first such event of a cabinet is kept. No bundle of its
//     group begins behind it, because every Peek that requests one requests the other.
//   - If another bundle of its group was shown first, a bundle begins behind that one; if
//     both are of one cabinet, behind all of it.
//   - Events that are shown together are adjacent in their cabinet.
func (t *hubModel) appendEvent(m *mailbox, id int) bool {
	e, fate := t.eventOf(m, id), t.fates[id]
	if t.blind {
		m.waiting = append(m.waiting, id)
		return true
	}
	if fate.bundles == 1 && fate.place == 0 {
		for _, earlier := range t.bundles[fate.bundle].behind {
			if m.seen[earlier] == 0 {
				return false
			}
		}
	}
	last := -1
	for _, before := range m.waiting {
		switch other := t.eventOf(m, before); {
		case other.Cabinet == e.Cabinet && t.fates[before].bundles == 0:
			return fate.bundles == 0
		case other.Group == e.Group && t.fates[before].bundles == 0 && fate.bundles == 1 && fate.place == 0:
			return false
		case other.Cabinet == e.Cabinet:
			last = before
		}
	}
	if fate.bundles == 1 && fate.place > 0 && last != t.bundles[fate.bundle].events[fate.place-1] {
		return false
	}
	m.waiting = append(m.waiting, id)
	return true
}
