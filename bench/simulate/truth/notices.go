package truth

type notice struct {
	Number int64  `json:"number"` // generation of the gate by which the bundle was closed
	Bundle string `json:"bundle"`
	For    string `json:"audience"`

	key Key
}

const (
	onRequest   = "request"     // the content of bundles whose domain is told
	subscribers = "subscribers" // the audience of notices to the subscribers of a recipient
)

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
		created := m.notices
		if n.For == subscribers {
			created = m.told
		}
		created[n.Bundle] = n
	}
}

// noticesCreated holds the notices to the bundles that were dequeued with them.
func (o *Observer) noticesCreated(m *mailboxes) {
	o.noticesHeld(m, m.notices, "its domain", func(b *bundle) bool { return b.Content == onRequest })
	o.noticesHeld(m, m.told, "its subscribers", func(b *bundle) bool {
		g := m.gates["gate."+b.Group].after
		return g != nil && len(g.Requests) > 0
	})
}

// noticesHeld holds the notices for an audience, who is told of the bundles that isOwed says.
func (o *Observer) noticesHeld(m *mailboxes, created map[string]notice, who string, isOwed func(*bundle) bool) {
	for id, b := range m.bundles {
		from, to := b.before.state(), b.after.state()
		owed := from == "open" && to == "dequeued" && isOwed(b.after)
		n, ok := created[id]
		switch {
		case owed && !ok:
			o.violated("notices", b.key, "it was dequeued, and %s will not be told", who)
		case ok && !owed:
			o.violated("notices", n.key, "its bundle went from %s to %s", from, to)
		case ok:
			if g := m.gates["gate."+b.after.Group].after; g == nil || g.Generation != n.Number {
				o.violated("notices", n.key, "it has number %d, which is not what its gate came to", n.Number)
			}
		}
	}
	for id, n := range created {
		if _, ok := m.bundles[id]; !ok {
			o.violated("notices", n.key, "it was not created with the Dequeue of bundle %s", id)
		}
	}
}
