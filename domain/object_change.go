package domain

import "time"

// ObjectsTopic is the topic of subscriptions that are called with each change of the current state of an
// object of a store. No sender can publish to it.
const ObjectsTopic = "object-changed"

// ObjectsStream returns the stream of [ObjectsTopic].
func ObjectsStream() StreamName { return StreamName{topicKind, ObjectsTopic} }

// An ObjectChange is a change of the current state of an object, as [ObjectsTopic] has it.
type ObjectChange struct {
	Name    ObjectName
	Version int64 // see Object.StateVersion
	Event   ObjectStateEvent
	At      time.Time
	Row     ObjectRow // the current row, or of a deletion, the row that was current; without attributes
}

// An ObjectStateEvent is what happened to the current state of an object.
type ObjectStateEvent string

// The events of the current state of an object.
const (
	StateCreated ObjectStateEvent = "created" // there was no current row
	StateUpdated ObjectStateEvent = "updated" // another row is the current one, or its facts are others
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

// stateEvent returns what happens to an object whose current row changes, or "": a delivery that is counted
// and a row that is moved are no change. nil is no current row.
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

// watched returns what those who watch the object are notified of, or "": a creation has no event.
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
