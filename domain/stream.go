package domain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A StreamName names a stream: a sequence of messages with any number of receivers, each of which
// reads it with a separate [Cursor]. A topic and a channel may have the same name.
type StreamName struct{ kind, name string }

// ParseTopic returns the stream of a topic. It accepts the names that ParseActorID accepts.
func ParseTopic(s string) (StreamName, error) { return parseStream(topicKind, s) }

// Topic returns the name of the topic. It returns false if s is not the stream of a topic.
func (s StreamName) Topic() (string, bool) { return s.name, s.kind == topicKind }

// ParseChannel returns the stream of a channel. It accepts the names that ParseActorID accepts.
func ParseChannel(s string) (StreamName, error) { return parseStream(channelKind, s) }

// DataStream returns the stream whose entries report that data is available for an actor. Its
// entries are not stored: the actor's watermark is the end of the stream.
func DataStream(actor ActorID) StreamName { return StreamName{dataKind, actor.s} }

// DequeuedStream returns the stream whose entries report that an actor has dequeued a bundle.
func DequeuedStream(actor ActorID) StreamName { return StreamName{dequeuedKind, actor.s} }

const (
	topicKind    = "topic"
	channelKind  = "channel"
	dataKind     = "data"
	dequeuedKind = "dequeued"
	resourceKind = "resource"
)

// DataActor returns the actor of a [DataStream]. It returns false if s is not a data stream.
func (s StreamName) DataActor() (ActorID, bool) { return ActorID{s.name}, s.kind == dataKind }

// ParseStreamName reads the text of [StreamName.String].
func ParseStreamName(s string) (StreamName, error) {
	kind, name, _ := strings.Cut(s, "|")
	switch kind {
	case topicKind, channelKind, dataKind, dequeuedKind, resourceKind:
		return parseStream(kind, name)
	}
	return StreamName{}, Errorf(Invalid, "stream: want topic|name, channel|name, data|name, dequeued|name or resource|name, got %q", Shorten(s))
}

func parseStream(kind, name string) (StreamName, error) {
	if err := checkName(kind, name); err != nil {
		return StreamName{}, err
	}
	return StreamName{kind, name}, nil
}

// String returns the kind and the name, joined by "|".
func (s StreamName) String() string { return s.kind + "|" + s.name }

// Priorities is the number of priorities in a stream: 0, the lowest, to 9. The entries of each
// priority are numbered separately.
const Priorities = 10

// An EntryID identifies an entry of a stream.
type EntryID struct {
	Priority int
	Number   int64 // number of earlier entries with the same priority
}

// String returns the priority and the number, joined by a dot.
func (e EntryID) String() string {
	return strconv.Itoa(e.Priority) + "." + strconv.FormatInt(e.Number, 10)
}

// CompareEntries orders entries by priority, then by number.
func CompareEntries(a, b EntryID) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Number, b.Number))
}

// A Position locates an entry in a stream. Segment and Page locate it in the store. If they are
// outdated, the entry is in a later page.
type Position struct {
	EntryID
	Segment int
	Page    int
}

// Next returns the position of the entry after p.
func (p Position) Next() Position { p.Number++; return p }

// String returns the fields of p, joined by dots.
func (p Position) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", p.Priority, p.Number, p.Segment, p.Page)
}

// ParsePosition reads the text of [Position.String].
func ParsePosition(s string) (Position, error) {
	var n [4]int64
	parts := strings.Split(s, ".")
	valid := len(parts) == len(n)
	for i := 0; valid && i < len(n); i++ {
		v, err := strconv.ParseInt(parts[i], 10, 64)
		n[i], valid = v, err == nil && v >= 0
	}
	if !valid || n[0] >= Priorities {
		return Position{}, Errorf(Invalid, "position: want priority.number.segment.page, got %q", Shorten(s))
	}
	return Position{EntryID: EntryID{Priority: int(n[0]), Number: n[1]}, Segment: int(n[2]), Page: int(n[3])}, nil
}
