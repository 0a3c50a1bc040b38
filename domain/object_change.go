package domain

import "time"

// ObjectsTopic is the topic to which the hub publishes each change of an object's current state.
// Only the hub publishes to it.
const ObjectsTopic = "object-changed"

// ObjectsStream returns the stream of the topic [ObjectsTopic].
func ObjectsStream() StreamName { return StreamName{topicKind, ObjectsTopic} }

// An ObjectChange is a change of an object's current state, as published to [ObjectsTopic].
type ObjectChange struct {
	Name    ObjectName
	Version int64 // see Object.StateVersion
	Event   ObjectStateEvent
	At      time.Time
	Row     ObjectRow // current row, or last current row if the object was deleted; without attributes
}

// An ObjectStateEvent says how an object's current state changed.
type ObjectStateEvent string

// The values of ObjectStateEvent.
const (
	StateCreated ObjectStateEvent = "created" // the object had no current row before
	StateUpdated ObjectStateEvent = "updated" // a different row is current, or the metadata of the current row changed
	StateDeleted ObjectStateEvent = "deleted" // the object no longer has a current row
)

// ParseObjectStateEvent accepts created, updated and deleted.
func ParseObjectStateEvent(s string) (ObjectStateEvent, error) {
	switch e := ObjectStateEvent(s); e {
	case StateCreated, StateUpdated, StateDeleted:
		return e, nil
	}
	return "", Errorf(Invalid, "event: want %s, %s or %s, got %q", StateCreated, StateUpdated, StateDeleted, Shorten(s))
}

// stateEvent returns the event for a change of the current row. before and after are nil if the
// object has no current row. stateEvent returns "" if the state is the same, for example if only
// the row's count of duplicates or its place changed.
func stateEvent(before, after *ObjectRow) ObjectStateEvent {
	switch {
	case before == nil && after == nil:
		return ""
	case before == nil:
		return StateCreated
	case after == nil:
		return StateDeleted
	case before.ID() != after.ID() || !before.hasSameFacts(&after.ObjectFacts):
		return StateUpdated
	}
	return ""
}

// watcherEvent returns the event that the object's watchers receive. It returns "" for a creation,
// which is not reported to watchers.
func (e ObjectStateEvent) watcherEvent() ChangeEvent {
	switch e {
	case StateUpdated:
		return ResourceUpdated
	case StateDeleted:
		return ResourceDeleted
	case StateCreated:
	}
	return ""
}

// hasSameFacts reports whether f and g contain the same values.
func (f *ObjectFacts) hasSameFacts(g *ObjectFacts) bool {
	a, b := *f, *g
	a.Size, b.Size, a.LastModified, b.LastModified = nil, nil, g.LastModified, g.LastModified
	hasSameSize := f.Size == g.Size || f.Size != nil && g.Size != nil && *f.Size == *g.Size
	return hasSameSize && f.LastModified.Equal(g.LastModified) && a == b
}

// StateChange returns the change of the object's current state in this update, made at time now,
// and sets the object's next StateVersion. It returns nil if the current state does not change.
func (c *ObjectChanges) StateChange(now time.Time) *ObjectChange {
	if c.State == "" {
		return nil
	}
	o := &c.Object
	now = now.UTC().Truncate(time.Microsecond)
	o.StateVersion = max(o.StateVersion+1, now.UnixMicro())
	row := o.Current
	if row == nil {
		row = c.before
	}
	change := &ObjectChange{Name: o.Name, Version: o.StateVersion, Event: c.State, At: now, Row: *row}
	change.Row.Attributes, change.Row.Patches, change.Row.WriteID = "", "", ""
	return change
}
