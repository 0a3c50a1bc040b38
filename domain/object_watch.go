package domain

// currentChange returns what a change of an object from one current row to another is to those who
// watch it, or "": an object that is created has no event, nor has a delivery that is counted, or a row that is
// moved. nil is no current row.
func currentChange(before, after *ObjectRow) ChangeEvent {
	switch {
	case before == nil:
		return ""
	case after == nil:
		return ResourceDeleted
	case before.ID() != after.ID() || !before.hasSameFacts(&after.ObjectFacts):
		return ResourceUpdated
	}
	return ""
}

// hasSameFacts reports whether f and g are the same.
func (f *ObjectFacts) hasSameFacts(g *ObjectFacts) bool {
	a, b := *f, *g
	a.Size, b.Size, a.LastModified, b.LastModified = nil, nil, g.LastModified, g.LastModified
	hasSameSize := f.Size == g.Size || f.Size != nil && g.Size != nil && *f.Size == *g.Size
	return hasSameSize && f.LastModified.Equal(g.LastModified) && a == b
}
