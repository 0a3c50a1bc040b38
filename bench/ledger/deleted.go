package ledger

import "slices"

// The hub may delete its stored copy of the content that a domain produced for a bundle. It then
// delivers the bundle again with the same events and a different body.

// Deleting records that a content is about to be deleted. After this call, a bundle with this
// content as its body may be received again with a different body.
func (l *Ledger) Deleting(content []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deleted == nil {
		l.deleted = make(map[Digest]Moment)
	}
	l.deleted[DigestOf(content)] = 0
}

// Deleted records that a content was deleted. A request that begins after this call must not return
// the content.
func (l *Ledger) Deleted(content []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	l.deleted[DigestOf(content)] = l.now
}

// isDeleted reports whether a content was deleted, or is being deleted.
func (l *Ledger) isDeleted(body Digest) bool {
	_, deleted := l.deleted[body]
	return deleted
}

// replaceBody handles a bundle that was received before with a different body. It accepts the new
// body if the content was deleted, and otherwise reports a violation.
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
