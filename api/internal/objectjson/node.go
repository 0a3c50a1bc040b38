package objectjson

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/domain"
)

// maxText is the limit in bytes for a text that has no limit of its own.
const maxText = 1024

// A node is a value of the text. A value that is missing, or null, is a node without text, and has no
// members, so that only a caller that needs it has to look.
type node struct {
	parent *node
	name   string // of the member, or the index of the element
	text   []byte
	event  *event // nil above the events

	members []eventjson.Member
	isSplit bool
}

// pointer returns the JSON pointer to a value.
func (n *node) pointer() string {
	if n.parent == nil {
		return ""
	}
	return n.parent.pointer() + "/" + eventjson.EscapePointer(domain.Clip(n.name))
}

// fail reports a fault of the event, unless it has one.
func (n *node) fail(reason, format string, args ...any) {
	if n.event.fault == nil {
		n.event.fault = &Fault{Index: n.event.index, Pointer: n.pointer(), Reason: reason, Detail: fmt.Sprintf(format, args...)}
	}
}

// isObject reports whether the value is an object.
func (n *node) isObject() bool { return len(n.text) > 0 && n.text[0] == '{' }

// split returns the members of an object. It fails if they cannot be found.
func (n *node) split() ([]eventjson.Member, error) {
	if n.isSplit || !n.isObject() {
		return n.members, nil
	}
	for m, err := range eventjson.Members(n.text) {
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, m)
	}
	n.isSplit = true
	return n.members, nil
}

// get returns a member of an object.
func (n *node) get(name string) *node {
	child := &node{parent: n, name: name, event: n.event}
	members, _ := n.split() // none, if it fails
	for i := range members {
		if string(members[i].Name) == name {
			if text := members[i].Value; string(text) != "null" {
				child.text = text
			}
			break
		}
	}
	return child
}

// count returns how many members have a name.
func (n *node) count(name string) (count int) {
	members, _ := n.split()
	for i := range members {
		if string(members[i].Name) == name {
			count++
		}
	}
	return count
}

// has reports whether there is a member, which may be null.
func (n *node) has(name string) bool { return n.count(name) > 0 }

// element returns the node of an element of an array.
func (n *node) element(index int, text []byte) *node {
	return &node{parent: n, name: strconv.Itoa(index), text: text, event: n.event}
}

// object returns a member that has to be an object.
func (n *node) object(name string) *node {
	child := n.get(name)
	child.want('{', "an object")
	return child
}

// want reports a value that is missing, or begins with another character.
func (n *node) want(first byte, what string) bool {
	switch {
	case n.text == nil:
		n.fail(MissingField, "%s: want %s", n.name, what)
	case n.text[0] != first:
		n.fail(WrongType, "%s: want %s, got %s", n.name, what, eventjson.TypeOf(n.text))
	default:
		return true
	}
	return false
}

// value returns the text that a string stands for. It has to be one.
func (n *node) value() string {
	if !n.want('"', "a string") {
		return ""
	}
	var s string
	if err := json.Unmarshal(n.text, &s); err != nil {
		n.fail(NotJSON, "%s: %v", n.name, err)
	}
	return s
}

// optional is value, and "" if it is missing. It also limits the length.
func (n *node) optional() string {
	if n.text == nil {
		return ""
	}
	s := n.value()
	if len(s) > maxText {
		n.fail(TooLong, "%s: want at most %d bytes, got %d", n.name, maxText, len(s))
	}
	return s
}

// time returns a time. One without a zone is in UTC, as in inventories of S3.
func (n *node) time() time.Time {
	text := n.value()
	if n.event.fault != nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04:05", text)
	}
	if err != nil {
		n.fail(InvalidTime, "%s: want a time such as 2026-03-01T12:00:00.000Z, got %q", n.name, domain.Clip(text))
	}
	return t.UTC()
}

// size returns a size in bytes, nil if it is missing. Every int64 is exact.
func (n *node) size() *int64 {
	if n.text == nil {
		return nil
	}
	if c := n.text[0]; c != '-' && (c < '0' || c > '9') {
		n.fail(WrongType, "%s: want a whole number, got %s", n.name, eventjson.TypeOf(n.text))
		return nil
	}
	size, err := strconv.ParseInt(string(n.text), 10, 64)
	if err != nil || size < 0 || n.text[0] == '-' {
		n.fail(InvalidSize, "%s: want a whole number from 0 to 9223372036854775807, got %s", n.name, domain.Clip(string(n.text)))
		return nil
	}
	return &size
}

// sequencer returns a sequencer, the null one if it is missing.
func (n *node) sequencer(form domain.SequencerForm) domain.Sequencer {
	if n.text == nil {
		return domain.Sequencer{}
	}
	text := n.value()
	s, err := domain.ParseSequencer(form, text)
	switch {
	case err != nil && len(text) > domain.MaxSequencer:
		n.fail(SequencerTooLong, "%v", err)
	case err != nil:
		n.fail(InvalidSequencer, "%v", err)
	}
	return s
}

// version returns a version id, the null version if it is missing.
func (n *node) version() domain.VersionID {
	v, err := domain.ParseVersionID(n.optional())
	if err != nil {
		n.fail(InvalidVersion, "%v", err)
	}
	return v
}

// etag returns an ETag in quotes, "" if it is missing.
func (n *node) etag() string {
	if n.text == nil {
		return ""
	}
	return domain.QuoteETag(n.optional())
}

// digest returns a short text that stands for parts.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write(part)      // it never fails
		_, _ = h.Write([]byte{0}) // which no part has that is followed by another
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
