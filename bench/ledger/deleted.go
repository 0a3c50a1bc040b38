package ledger

import "slices"

// The content of a bundle that was made on request may be deleted where the hub keeps it. Then the
// bundle comes with another body, and with the same events.

// Deleting notes that a content is about to be deleted. A bundle that had it as its body may have
// another one from now on.
func (l *Ledger) Deleting(content []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deleted == nil {
		l.deleted = make(map[Digest]Moment)
	}
	l.deleted[DigestOf(content)] = 0
}

// Deleted notes that a content was deleted. No request that begins from now on may bring it.
func (l *Ledger) Deleted(content []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	l.deleted[DigestOf(content)] = l.now
}

// isDeleted reports whether a content was deleted, or may have been.
func (l *Ledger) isDeleted(body Digest) bool {
	_, deleted := l.deleted[body]
	return deleted
}

// replaceBody compares a body with that of a bundle which was received before. The two are not
// the same.
func (l *Ledger) replaceBody(b *Bundle, body Digest, read func() ([]Element, error)) error {
	switch {
	case l.isDeleted(body): // the request began before the deletion
		return nil
	case !l.isDeleted(b.body):
		return l.reportViolation(RuleSameBody, "bundle %s of %s: its body is not the same as before", b.ID, b.Actor)
	}
	elements, err := read()
	if err != nil {
		return l.reportViolation(RuleDelivered, "bundle %s of %s: %v", b.ID, b.Actor, err)
	}
	if !slices.Equal(elements, b.Elements) {
		return l.reportViolation(RuleSameBody, "bundle %s of %s: its content was made again, with other events", b.ID, b.Actor)
	}
	b.body = body
	return nil
}
