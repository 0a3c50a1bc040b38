package invariants

type notice struct {
	Number  int64  `json:"number"` // generation of the gate when the bundle was closed
	Bundle  string `json:"bundle"`
	For     string `json:"audience"`
	Version int64  `json:"version"` // number of the change in a notice for watches

	key Key
}

const (
	onRequest   = "request"     // content mode of bundles whose domain is notified
	subscribers = "subscribers" // audience of notices to the subscribers of a recipient
	watchers    = "watchers"    // audience of notices to the watches of a bundle

	watchersOfRemoval = "watchers of removal" // audience of notices that a watched bundle was removed
)

// checkNotice checks a change of a notice. A deletion is always allowed, because no document records whether a notice
// was delivered.
func (o *Observer) checkNotice(m *mailboxChanges, key Key, c documentChange) {
	if c.after == nil {
		return
	}
	if c.before != nil {
		o.addViolation("notices", key, "a notice has changed")
		return
	}
	n := notice{key: key}
	if o.decodeInto(key, c.after, &n) {
		created := m.notices
		switch n.For {
		case subscribers:
			created = m.forSubscribers
		case watchers:
			created = m.watched
		case watchersOfRemoval:
			created = m.removed
		}
		created[n.Bundle] = n
	}
}

// checkNewNotices checks that the created notices match the bundles that the commit dequeued or removed.
func (o *Observer) checkNewNotices(r *recipientState, m *mailboxChanges) {
	o.checkNoticesFor(m, m.notices, "its domain", func(b *bundleDocument) bool { return b.Content == onRequest })
	o.checkNoticesFor(m, m.forSubscribers, "its subscribers", func(b *bundleDocument) bool {
		g := m.gates["gate."+b.Group].after
		return g != nil && len(g.Requests) > 0
	})
	o.checkNoticesFor(m, m.watched, "its watches", func(b *bundleDocument) bool { return b.Watched })
	o.checkChangeCount(m)
	o.checkRemovals(r, m)
}

// checkChangeCount checks that a bundle stays watched, and that its count equals the number of its changes that have a
// notice.
func (o *Observer) checkChangeCount(m *mailboxChanges) {
	for id, b := range m.bundles {
		if b.before == nil || b.after == nil || b.before.isReplacedAfterExpiry(b.after) {
			continue
		}
		want := b.before.Changes
		if n, ok := m.watched[id]; ok {
			if want++; n.Version != want {
				o.addViolation("notices", n.key, "it has version %d, but the bundle had %d changes before", n.Version, b.before.Changes)
			}
		}
		if b.after.Changes != want {
			o.addViolation("notices", b.key, "it counts %d changes, want %d", b.after.Changes, want)
		}
		if b.before.Watched && !b.after.Watched {
			o.addViolation("notices", b.key, "its mark that it is watched was removed")
		}
	}
}

// Changes returns the number of changes of a bundle that have a notice for its watches.
func (o *Observer) Changes(recipient, bundle string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.recipients[recipient]
	if r == nil {
		return 0
	}
	if b := r.bundles[bundle]; b != nil {
		return b.Changes
	}
	return r.removals[bundle]
}

// checkNoticesFor checks the notices for one audience. A dequeued bundle must have a notice if isOwed returns true for
// the bundle, and none otherwise.
func (o *Observer) checkNoticesFor(m *mailboxChanges, created map[string]notice, who string, isOwed func(*bundleDocument) bool) {
	for id, b := range m.bundles {
		from, to := b.before.stateOf(), b.after.stateOf()
		owed := from == "open" && to == "dequeued" && isOwed(b.after)
		n, ok := created[id]
		switch {
		case owed && !ok:
			o.addViolation("notices", b.key, "it was dequeued, but no notice for %s was stored", who)
		case ok && !owed:
			o.addViolation("notices", n.key, "it was stored although its bundle went from %s to %s", from, to)
		case ok:
			if g := m.gates["gate."+b.after.Group].after; g == nil || g.Generation != n.Number {
				o.addViolation("notices", n.key, "it has number %d, which is not the generation of its gate", n.Number)
			}
		}
	}
	for id, n := range created {
		if _, ok := m.bundles[id]; !ok {
			o.addViolation("notices", n.key, "it was created without the Dequeue of bundle %s", id)
		}
	}
}
