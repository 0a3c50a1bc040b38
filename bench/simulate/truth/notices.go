package truth

type notice struct {
	Group  string `json:"group"`
	Number int64  `json:"number"`
	Bundle string `json:"bundle"`
}

const onRequest = "request" // the content of bundles whose domain is told

// noticeChanged looks at one notice. That it goes is a matter of delivery, which the
// store does not know of.
func (o *Observer) noticeChanged(m *mailboxes, key Key, c change) {
	if c.after == nil {
		return
	}
	if c.before != nil {
		o.violated("notices", key, "a notice has changed")
		return
	}
	var n notice
	if !o.decode(key, c.after, &n) {
		return
	}
	m.notices[n.Bundle] = key
	if g := m.gates["gate."+n.Group].after; g == nil || g.Generation != n.Number {
		o.violated("notices", key, "it has number %d, which is not what its gate came to", n.Number)
	}
}

// noticesCreated holds the notices to the bundles that were dequeued with them.
func (o *Observer) noticesCreated(m *mailboxes) {
	for id, b := range m.bundles {
		isOwed := b.before.state() == "open" && b.after.state() == "dequeued" && b.after.Content == onRequest
		if _, ok := m.notices[id]; isOwed && !ok {
			o.violated("notices", b.key, "it was dequeued, and its domain will not be told")
		} else if ok && !isOwed {
			o.violated("notices", m.notices[id], "its bundle went from %s to %s", b.before.state(), b.after.state())
		}
	}
	for id, key := range m.notices {
		if _, ok := m.bundles[id]; !ok {
			o.violated("notices", key, "it was not created with the Dequeue of bundle %s", id)
		}
	}
}
