package domain

import (
	"slices"
	"time"
)

// A ListedObject is an object in a store's listing, which contains only the latest version.
type ListedObject struct {
	Version VersionID
	Marker  bool // the latest version is a delete marker
	ObjectFacts
}

// NewestRows returns the newest row of each version, in descending order.
func NewestRows(rows []ObjectRow) (newest []ObjectRow) {
	var f seenVersions
	sorted := slices.SortedFunc(slices.Values(rows), func(a, b ObjectRow) int { return CompareObjectRows(b, a) })
	for i := range sorted {
		if f.observe(sorted[i].Version) {
			newest = append(newest, sorted[i])
		}
	}
	return newest
}

// HasVersionsOutside reports whether all rows of some version may be spilled.
func (o *Object) HasVersionsOutside() bool {
	return o.Spilled > 0 && (len(o.SpilledVersions) == MaxSpilledVersions || slices.ContainsFunc(o.SpilledVersions, func(v VersionID) bool {
		return !slices.ContainsFunc(o.Rows, func(r ObjectRow) bool { return r.Version == v })
	}))
}

// EventsOfListing compares o with a store's listing, and returns the events that the store has not
// reported. The events have no sequencer and no carrier. Their time is the time of the request for
// the listing, minus [ClockMargin]: later changes have later times, whether the listing includes
// them or not. newest is the result of NewestRows for o. listed is nil if the listing does not
// contain the object. The rules are:
//
//   - An object that is not in the listing has no versions.
//   - The version in the listing is the latest version, and the listing contains its state. Metadata
//     that the listing lacks is preserved if the content is the same.
//   - No version above the listed one exists, because it would be the latest version. If the listed
//     version has no row yet, any versions may exist below it.
func (o *Object) EventsOfListing(newest []ObjectRow, listed *ListedObject, requested time.Time) []ObjectEvent {
	c, at := o.Current, responseTime(requested)
	switch {
	case c != nil && isEarlier(at, c.Time), c == nil && len(newest) > 0 && isEarlier(at, newest[0].Time):
		return nil
	case c == nil && (listed == nil || listed.Marker), c != nil && listed != nil && listed.isKnown(c):
		return nil
	case listed == nil:
		return eventsOfDeletion(newest, at)
	case listed.Marker:
		return []ObjectEvent{{Version: listed.Version, Type: ObjectDeleted, Marker: true, Time: at, ObjectFacts: listed.ObjectFacts}}
	}
	e := ObjectEvent{Version: listed.Version, Type: ObjectCreated, Time: at, ObjectFacts: listed.ObjectFacts}
	if c != nil && c.Version == e.Version {
		e.keepFacts(&c.ObjectFacts)
	}
	above := max(0, slices.IndexFunc(newest, func(r ObjectRow) bool { return r.Version == e.Version }))
	return append(eventsOfDeletion(newest[:above], at), e)
}

// eventsOfDeletion returns a Deleted event for each live version that is not newer than at.
func eventsOfDeletion(newest []ObjectRow, at time.Time) (events []ObjectEvent) {
	for i := range newest {
		if r := &newest[i]; r.IsLive() && !isEarlier(at, r.Time) {
			events = append(events, ObjectEvent{Version: r.Version, Type: ObjectDeleted, Time: at, ObjectFacts: ObjectFacts{Reason: Crawl}})
		}
	}
	return events
}

// isKnown reports whether the listing agrees with the object's current row. If the ETags are equal,
// values that only one of them contains do not matter: events contain less metadata than listings.
// But if the content cannot be read immediately, the row must have the storage class or archive
// status of the listing.
func (l *ListedObject) isKnown(current *ObjectRow) bool {
	known := &current.ObjectFacts
	hasContent := l.ETag != "" && l.ETag == known.ETag
	isSame := func(listed, known string) bool { return listed == "" || listed == known || hasContent && known == "" }
	listed := ObjectEvent{Type: ObjectCreated, ObjectFacts: l.ObjectFacts}
	return !l.Marker && l.Version == current.Version &&
		(l.Size == nil || known.Size == nil && hasContent || known.Size != nil && *l.Size == *known.Size) &&
		(l.LastModified.IsZero() || known.LastModified.IsZero() && hasContent ||
			l.LastModified.Truncate(time.Second).Equal(known.LastModified.Truncate(time.Second))) && // times in HTTP headers have a resolution of seconds
		isSame(l.ETag, known.ETag) && isSame(l.SHA256, known.SHA256) &&
		isSame(l.StorageClass, known.StorageClass) && (known.StorageClass != "" || listed.IsAccessible()) &&
		(l.ArchiveStatus == "" || l.ArchiveStatus == known.ArchiveStatus) && isSame(l.IngestID, known.IngestID) && isSame(l.Attributes, known.Attributes)
}

// keepFacts copies the values that f lacks from known, if f and known describe the same content.
func (f *ObjectFacts) keepFacts(known *ObjectFacts) {
	if f.ETag == "" || f.ETag != known.ETag {
		return
	}
	for _, fact := range []struct {
		now  *string
		then string
	}{{&f.SHA256, known.SHA256}, {&f.IngestID, known.IngestID}, {&f.Attributes, known.Attributes}, {&f.Patches, known.Patches}} {
		if *fact.now == "" {
			*fact.now = fact.then
		}
	}
}
