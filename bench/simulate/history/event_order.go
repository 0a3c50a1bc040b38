package history

// noteOrder notes for each bundle which events are there before its first. One that was
// shown before another of its group was asked for was open before it, and closed.
func (t *table) noteOrder(steps []*step) {
	from, until := make([]int64, len(t.bundles)), make([]int64, len(t.bundles)) // the last call and the first answer
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

// appendEvent puts a new event behind all that waits. It reports false if the rest of the
// history cannot be as it is then; since the whole history is known, that can be told
// now, long before a search would come to it:
//
//   - An event that is never shown waits for ever. Nothing of its cabinet that comes
//     behind it is ever shown, so only the first such event of a cabinet need be kept.
//     Nor does a bundle ever begin behind it in its group: every Peek that asks for
//     one asks for the other.
//   - A bundle of which another of its group was shown first begins behind it, and if
//     the two are of one cabinet, behind all of it.
//   - Events that are shown together come together, with nothing of their cabinet
//     between them.
func (t *model) appendEvent(m *mailbox, id int) bool {
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
