package history

// append puts a new event behind all that waits. It reports false if the rest of the
// history cannot be as it is then; since the whole history is known, that can be told
// now, long before a search would come to it:
//
//   - An event that is never shown waits for ever. Nothing of its cabinet that comes
//     behind it is ever shown, so only the first such event of a cabinet need be kept.
//     Nor does a bundle ever begin behind it in its group: every Peek that asks for
//     one asks for the other.
//   - Events that are shown together come together, with nothing of their cabinet
//     between them.
func (t *model) append(m *mailbox, id int) bool {
	e, fate := t.event(m, id), t.fates[id]
	if t.blind {
		m.waiting = append(m.waiting, id)
		return true
	}
	last := -1
	for _, before := range m.waiting {
		switch other := t.event(m, before); {
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
