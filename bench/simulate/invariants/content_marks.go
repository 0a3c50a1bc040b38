package invariants

// The content of a bundle with the content mode request is an object. If that object is deleted while the bundle is
// open, the bundle is marked. Only new content of the bundle removes the mark.

// Deleted records that an object of the content store was deleted. If Deleted is never called, an Observer does not check
// marks.
func (o *Observer) Deleted(object string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.deleted == nil {
		o.deleted = make(map[string]bool)
	}
	o.deleted[object] = true
}

// checkContent checks a change of the content of a bundle. Its last parameters are the bundle before the
// commit, or nil if the bundle is new, and the bundle after the commit.
func (o *Observer) checkContent(r *recipientState, key Key, was, is *bundleDocument) {
	if was == nil {
		was = &bundleDocument{}
	}
	replaced := was.Object != "" && was.Object != is.Object
	switch {
	case is.Gone && (is.Object == "" || is.Content != onRequest):
		o.addViolation("L9", key, "it is marked, but its content was not produced by a domain")
	case replaced && !was.Gone:
		o.addViolation("L9", key, "its content was replaced, but was not marked")
	case replaced && is.Gone:
		o.addViolation("L9", key, "its content was replaced, but the mark was not removed")
	case was.Gone && !replaced && !is.Gone:
		o.addViolation("L9", key, "its mark was removed, but its content was not replaced")
	case is.Gone && !was.Gone && o.deleted != nil && !o.deleted[is.Object]:
		o.addViolation("L9", key, "it is marked, but object %s was not deleted", is.Object)
	case (replaced || is.Gone != was.Gone) && is.State != "open":
		o.addViolation("L9", key, "it is %s, but its content has changed", is.State)
	case is.Object != was.Object && r.replaced[is.Object]:
		o.addViolation("L9", key, "its content is object %s again, which was replaced because it was deleted", is.Object)
	}
	if replaced {
		if r.replaced == nil {
			r.replaced = make(map[string]bool)
		}
		r.replaced[was.Object] = true
		o.markReached("deleted content was made again")
	}
	if is.Gone && !was.Gone {
		o.markReached("a content was deleted under an open bundle")
	}
}
