package invariants

// checkRemovals checks that the removal of a watched bundle creates a notice in the same commit. A watched bundle must
// have no time to live, because the engine would remove the bundle without a notice.
func (o *Observer) checkRemovals(r *recipientState, m *mailboxChanges) {
	for id, b := range m.bundles {
		if is := b.after; is != nil {
			switch {
			case is.Watched && is.State != "open" && is.TTL > 0:
				o.addViolation("notices", b.key, "it is watched, but expires after %d seconds without a notice", is.TTL)
			case is.Expires > 0 && is.State == "open":
				o.addViolation("notices", b.key, "it is open, but may be removed at %d", is.Expires)
			case is.Expires > 0 && !is.Watched:
				o.addViolation("notices", b.key, "it is not watched, but has a removal time %d", is.Expires)
			}
		}
		n, hasNotice := m.removed[id]
		isRemoved := b.before != nil && b.after == nil && b.before.Watched
		switch {
		case isRemoved && !hasNotice:
			o.addViolation("notices", b.key, "it was removed, but no notice for its watches was stored")
		case hasNotice && !isRemoved:
			o.addViolation("notices", n.key, "it reports the removal of its bundle, which went from %s to %s", b.before.stateOf(), b.after.stateOf())
		case hasNotice:
			if n.Version != b.before.Changes+1 {
				o.addViolation("notices", n.key, "it has version %d, but the bundle had %d changes before", n.Version, b.before.Changes)
			}
			if b.before.Expires == 0 {
				o.addViolation("retention", b.key, "it was removed, but had no removal time")
			}
			r.removals[id] = n.Version
			o.markReached("a watched bundle was removed")
		}
	}
	for id, n := range m.removed {
		if _, ok := m.bundles[id]; !ok {
			o.addViolation("notices", n.key, "it was created without the removal of bundle %s", id)
		}
	}
}

// Removal returns the version of the change that removed a watched bundle, or 0.
func (o *Observer) Removal(recipient, bundle string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.recipients[recipient]; r != nil {
		return r.removals[bundle]
	}
	return 0
}

// HasExpiring reports whether a sweep must still remove a closed bundle.
func (o *Observer) HasExpiring() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.recipients {
		for _, b := range r.bundles {
			if b.Expires > 0 {
				return true
			}
		}
	}
	return false
}
