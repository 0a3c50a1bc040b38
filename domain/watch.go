package domain

import (
	"strings"
	"time"
)

// A WatchID names a watch. It is a UUID that is unique among the watches of its owner. A later
// WatchID is greater than an earlier one.
type WatchID [16]byte

// ParseWatchID reads the 36-character form of a UUID, in upper or lower case. It returns an Invalid
// error for the nil UUID and any other text.
func ParseWatchID(s string) (WatchID, error) {
	id, err := parseUUID("watch id", s)
	return id, err
}

// NewWatchID returns a UUID of version 7 (RFC 9562), which contains the time at. Ids sort by their
// milliseconds; random affects only the order within a millisecond.
func NewWatchID(at time.Time, random [10]byte) (id WatchID) {
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i))) //nolint:gosec // one byte after the other
	}
	copy(id[6:], random[:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// String returns the 36-character form in lower case.
func (id WatchID) String() string { return formatUUID(id) }

const watchPrefix = "w|"

// Cursor returns the id of the watch's cursor. owner is the owner of the watch.
func (id WatchID) Cursor(owner ActorID) CursorID {
	return CursorID{watchPrefix + owner.String() + "|" + id.String()}
}

// WatchOf returns the watch whose cursor has the given id, and the watch's owner. It returns false
// if the cursor belongs to a different kind of receiver.
func WatchOf(cursor CursorID) (ActorID, WatchID, bool) {
	text, isWatch := strings.CutPrefix(cursor.s, watchPrefix)
	owner, name, hasName := strings.Cut(text, "|")
	id, err := ParseWatchID(name)
	return ActorID{owner}, id, isWatch && hasName && err == nil
}

// A Change records one change of a watched resource.
type Change struct {
	Resource Resource
	Version  int64 // number of the resource's change, from 1 for the first change after the first watch was created
	Event    ChangeEvent
	At       time.Time
}

// A ChangeEvent says how a resource changed.
type ChangeEvent string

// The values of ChangeEvent. A creation has no event.
const (
	ResourceUpdated ChangeEvent = "updated"
	ResourceDeleted ChangeEvent = "deleted"
)

// ParseChangeEvent accepts updated and deleted.
func ParseChangeEvent(s string) (ChangeEvent, error) {
	switch e := ChangeEvent(s); e {
	case ResourceUpdated, ResourceDeleted:
		return e, nil
	}
	return "", Errorf(Invalid, "event: want %s or %s, got %q", ResourceUpdated, ResourceDeleted, Shorten(s))
}

// The names of the attributes in a Message about a Change.
const (
	changeEvent    = "event"
	changeResource = "resource"
	changeTime     = "time"
)

// Message returns the message about c for the stream of the resource.
func (c *Change) Message() Message {
	return Message{Version: c.Version, Attributes: map[string]string{
		changeEvent: string(c.Event), changeResource: c.Resource.Key(), changeTime: c.At.UTC().Format(time.RFC3339Nano),
	}}
}

// ChangeOf returns the change that a message reports. number is the number of the message's entry.
func ChangeOf(m *Message, number int64) (Change, error) {
	c := Change{Version: number + 1}
	var err error
	if c.Event, err = ParseChangeEvent(m.Attributes[changeEvent]); err != nil {
		return c, err
	}
	if c.Resource, err = ParseResourceKey(m.Attributes[changeResource]); err != nil {
		return c, err
	}
	if c.At, err = time.Parse(time.RFC3339Nano, m.Attributes[changeTime]); err != nil {
		return c, Errorf(Invalid, "time of a change: %w", err)
	}
	return c, nil
}
