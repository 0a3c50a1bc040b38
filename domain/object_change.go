package domain

import "time"

// ObjectsTopic is the topic of the changes of the current states of objects. Only the hub publishes
// to it.
const ObjectsTopic = "object-changed"

// ObjectsStream returns the stream of [ObjectsTopic].
func ObjectsStream() StreamName { return StreamName{topicKind, ObjectsTopic} }

// An ObjectChange is a change of the current state of an object, as published to
// [ObjectsTopic].
type ObjectChange struct {
	Name    ObjectName
	Version int64 // see Object.StateVersion
	Event   ObjectStateEvent
	At      time.Time
	Row     ObjectRow // the current row or, after a deletion, the last current row; without attributes
}

// An ObjectStateEvent says how the current state of an object changed.
type ObjectStateEvent string

// The events of the current state of an object.
const (
	StateCreated ObjectStateEvent = "created" // the object had no current row before
	StateUpdated ObjectStateEvent = "updated" // another row is current, or the facts of the current row changed
	StateDeleted ObjectStateEvent = "deleted" // the object has no current row any longer
)

// ParseObjectStateEvent returns the event with a text.
func ParseObjectStateEvent(s string) (ObjectStateEvent, error) {
	switch e := ObjectStateEvent(s); e {
	case StateCreated, StateUpdated, StateDeleted:
		return e, nil
	}
	return "", Errorf(Invalid, "event: want %s, %s or %s, got %q", StateCreated, StateUpdated, StateDeleted, Shorten(s))
}

// stateEvent returns the event for a change of the current row from before to after; nil means no
// current row. It returns "" if the state is the same: a counted duplicate or another place of
// the row does not change the state.
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

// watcherEvent returns the event that the watchers of the object receive, or "" for a creation:
// watchers receive no event for it.
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

// hasSameFacts reports whether f and g have the same values.
func (f *ObjectFacts) hasSameFacts(g *ObjectFacts) bool {
	a, b := *f, *g
	a.Size, b.Size, a.LastModified, b.LastModified = nil, nil, g.LastModified, g.LastModified
	hasSameSize := f.Size == g.Size || f.Size != nil && g.Size != nil && *f.Size == *g.Size
	return hasSameSize && f.LastModified.Equal(g.LastModified) && a == b
}

// StateChange returns the change of the current state that results from c, and sets the next
// StateVersion of the object. It returns nil if the current state does not change. now is the time
// of the change.
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
