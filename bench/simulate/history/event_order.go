package history

// noteOrder records for each bundle which events are stored before its first event. It derives this from the order of
// bundles in a group: if a Peek returned bundle a before the last Peek of bundle b began, then a was closed before b
// was opened.
func (t *nameTable) noteOrder(steps []*modelStep) {
	from, until := make([]int64, len(t.bundles)), make([]int64, len(t.bundles)) // for each bundle, the latest begin and the earliest end of its Peeks
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

// appendEvent adds a new event after all waiting events. It returns false if the rest of the history is then
// impossible. The whole history is known, so appendEvent can decide this long before the search would fail:
//
//   - An event that is in no bundle waits forever. Later events of its cabinet are in no
//     bundle either, so waiting has only the first of these events. No bundle of the group
//     begins after this event, because a Peek of the group returns the event first.
//   - If an earlier bundle of the same group is known, the first event of a bundle is after
//     the first event of the earlier bundle. If both bundles are of one cabinet, it is after
//     all events of the earlier bundle.
//   - The events of a bundle are adjacent in their cabinet.
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
