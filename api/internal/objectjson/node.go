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

// maxText is the maximum length in bytes of a string for which there is no specific limit.
const maxText = 1024

// A jsonNode is a JSON value in a message. A member that is missing or null is a node without text
// and without members, so only callers that require a member need to check that it exists.
type jsonNode struct {
	parent *jsonNode
	name   string // name of the member, or index of the element
	text   []byte
	event  *parsedEvent // event that contains the value; nil outside of events

	members []eventjson.Member
	isSplit bool
}

// pointer returns the JSON pointer to a value.
func (n *jsonNode) pointer() string {
	if n.parent == nil {
		return ""
	}
	return n.parent.pointer() + "/" + eventjson.EscapePointer(domain.Shorten(n.name))
}

// reportFault sets the fault of the event, unless the event already has one.
func (n *jsonNode) reportFault(reason, format string, args ...any) {
	if n.event.fault == nil {
		n.event.fault = &Fault{Index: n.event.index, Pointer: n.pointer(), Reason: reason, Detail: fmt.Sprintf(format, args...)}
	}
}

// isObject reports whether the value is an object.
func (n *jsonNode) isObject() bool { return len(n.text) > 0 && n.text[0] == '{' }

// splitMembers returns the members of an object. It fails if the text cannot be split into members.
func (n *jsonNode) splitMembers() ([]eventjson.Member, error) {
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

// findMember returns the member called name. If none exists, it returns a node without text.
func (n *jsonNode) findMember(name string) *jsonNode {
	child := &jsonNode{parent: n, name: name, event: n.event}
	members, _ := n.splitMembers() // after an error, members is nil
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

// countMembers returns the number of members called name.
func (n *jsonNode) countMembers(name string) (count int) {
	members, _ := n.splitMembers()
	for i := range members {
		if string(members[i].Name) == name {
			count++
		}
	}
	return count
}

// hasMember reports whether a member called name exists, even if it is null.
func (n *jsonNode) hasMember(name string) bool { return n.countMembers(name) > 0 }

// elementNode returns the node for the array element with the given index.
func (n *jsonNode) elementNode(index int, text []byte) *jsonNode {
	return &jsonNode{parent: n, name: strconv.Itoa(index), text: text, event: n.event}
}

// objectMember returns the member called name. It reports a fault unless the member is an object.
func (n *jsonNode) objectMember(name string) *jsonNode {
	child := n.findMember(name)
	child.expectStart('{', "an object")
	return child
}

// expectStart reports a fault and returns false if the value is missing or does not start with
// first.
func (n *jsonNode) expectStart(first byte, what string) bool {
	switch {
	case n.text == nil:
		n.reportFault(MissingField, "%s: want %s", n.name, what)
	case n.text[0] != first:
		n.reportFault(WrongType, "%s: want %s, got %s", n.name, what, eventjson.TypeOf(n.text))
	default:
		return true
	}
	return false
}

// stringValue returns the value of a string. It reports a fault if the value is not a string.
func (n *jsonNode) stringValue() string {
	if !n.expectStart('"', "a string") {
		return ""
	}
	var s string
	if err := json.Unmarshal(n.text, &s); err != nil {
		n.reportFault(NotJSON, "%s: %v", n.name, err)
	}
	return s
}

// optionalString returns the value of a string, or "" if it is missing. It reports a fault if the
// string is too long.
func (n *jsonNode) optionalString() string {
	if n.text == nil {
		return ""
	}
	s := n.stringValue()
	if len(s) > maxText {
		n.reportFault(TooLong, "%s: want at most %d bytes, got %d", n.name, maxText, len(s))
	}
	return s
}

// timeValue returns a time. A time without a zone is UTC, as in S3 inventories.
func (n *jsonNode) timeValue() time.Time {
	text := n.stringValue()
	if n.event.fault != nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04:05", text)
	}
	if err != nil {
		n.reportFault(InvalidTime, "%s: want a time such as 2026-03-01T12:00:00.000Z, got %q", n.name, domain.Shorten(text))
	}
	return t.UTC()
}

// sizeValue returns a size in bytes, or nil if it is missing. It reads every int64 exactly.
func (n *jsonNode) sizeValue() *int64 {
	if n.text == nil {
		return nil
	}
	if c := n.text[0]; c != '-' && (c < '0' || c > '9') {
		n.reportFault(WrongType, "%s: want a whole number, got %s", n.name, eventjson.TypeOf(n.text))
		return nil
	}
	size, err := strconv.ParseInt(string(n.text), 10, 64)
	if err != nil || size < 0 || n.text[0] == '-' {
		n.reportFault(InvalidSize, "%s: want a whole number from 0 to 9223372036854775807, got %s", n.name, domain.Shorten(string(n.text)))
		return nil
	}
	return &size
}

// readSequencer returns a sequencer, or the null sequencer if it is missing.
func (n *jsonNode) readSequencer(form domain.SequencerForm) domain.Sequencer {
	if n.text == nil {
		return domain.Sequencer{}
	}
	text := n.stringValue()
	s, err := domain.ParseSequencer(form, text)
	switch {
	case err != nil && len(text) > domain.MaxSequencer:
		n.reportFault(SequencerTooLong, "%v", err)
	case err != nil:
		n.reportFault(InvalidSequencer, "%v", err)
	}
	return s
}

// readVersion returns a version id, or the null version if it is missing.
func (n *jsonNode) readVersion() domain.VersionID {
	v, err := domain.ParseVersionID(n.optionalString())
	if err != nil {
		n.reportFault(InvalidVersion, "%v", err)
	}
	return v
}

// readETag returns an ETag in quotes, or "" if it is missing.
func (n *jsonNode) readETag() string {
	if n.text == nil {
		return ""
	}
	return domain.QuoteETag(n.optionalString())
}

// shortDigest returns a short hash of parts as text.
func shortDigest(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write(part)      // writing to a hash never fails
		_, _ = h.Write([]byte{0}) // this byte separates the parts, because no part contains it
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
