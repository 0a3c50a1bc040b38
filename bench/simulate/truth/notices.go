package truth

type notice struct {
	Number int64  `json:"number"` // generation of the gate by which the bundle was closed
	Bundle string `json:"bundle"`

	key Key
}

const onRequest = "request" // the content of bundles whose domain is told

// noticeChanged looks at one notice. That it goes is a matter of delivery, of which
// the store knows nothing.
func (o *Observer) noticeChanged(m *mailboxes, key Key, c change) {
	if c.after == nil {
		return
	}
	if c.before != nil {
		o.violated("notices", key, "a notice has changed")
		return
	}
	n := notice{key: key}
	if o.decode(key, c.after, &n) {
		m.notices[n.Bundle] = n
	}
}

// noticesCreated holds the notices to the bundles that were dequeued with them.
func (o *Observer) noticesCreated(m *mailboxes) {
	for id, b := range m.bundles {
		from, to := b.before.state(), b.after.state()
		isOwed := from == "open" && to == "dequeued" && b.after.Content == onRequest
		n, ok := m.notices[id]
		switch {
		case isOwed && !ok:
			o.violated("notices", b.key, "it was dequeued, and its domain will not be told")
		case ok && !isOwed:
			o.violated("notices", n.key, "its bundle went from %s to %s", from, to)
		case ok:
			if g := m.gates["gate."+b.after.Group].after; g == nil || g.Generation != n.Number {
				o.violated("notices", n.key, "it has number %d, which is not what its gate came to", n.Number)
			}
		}
	}
	for id, n := range m.notices {
		if _, ok := m.bundles[id]; !ok {
			o.violated("notices", n.key, "it was not created with the Dequeue of bundle %s", id)
		}
	}
}
