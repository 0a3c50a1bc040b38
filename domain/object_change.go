package domain

import "time"

// ObjectsTopic is the topic of subscriptions that are called with each change of the current state of an
// object of a store. No sender can publish to it.
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
	StateCreated ObjectStateEvent = "created" // there was no current row
	StateUpdated ObjectStateEvent = "updated" // another row is current, or the facts of the current row changed
	StateDeleted ObjectStateEvent = "deleted" // there is no current row
)

// ParseObjectStateEvent returns the event with a text.
func ParseObjectStateEvent(s string) (ObjectStateEvent, error) {
	switch e := ObjectStateEvent(s); e {
	case StateCreated, StateUpdated, StateDeleted:
		return e, nil
	}
	return "", Errorf(Invalid, "event: want %s, %s or %s, got %q", StateCreated, StateUpdated, StateDeleted, Clip(s))
}

// stateEvent returns the event for a change of the current row from before to after, where nil
// means no current row. It returns "" if the state is the same: a counted duplicate and a moved
// row are no change.
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

// watched returns the event for the watchers of the object, or "" for a creation, which has no
// event.
func (e ObjectStateEvent) watched() ChangeEvent {
	switch e {
	case StateUpdated:
		return ResourceUpdated
	case StateDeleted:
		return ResourceDeleted
	case StateCreated:
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

// StateChange returns the change of the current state that c makes, nil if it makes none, and gives the object
// its next version. now is the time of the change.
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
