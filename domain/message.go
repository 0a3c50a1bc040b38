package domain

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Message is a message that a sender publishes to a stream.
type Message struct {
	ID          string            // id that the sender chose; "": the sender chose no id
	Priority    int               // 0, the lowest, to 9
	Version     int64             // one more than the number that the message's entry must have; 0: any number
	Attributes  map[string]string // metadata, such as the attributes of a CloudEvent
	ContentType string
	Payload     []byte
}

// The limits of a message.
const (
	MaxMessageID  = 256
	MaxAttributes = 64
	// MaxAttributeBytes is the maximum total length of all attribute names and values.
	MaxAttributeBytes = 8 << 10
	MaxPayload        = 1 << 20
)

// Check returns an Invalid error that describes the first invalid field of m.
func (m *Message) Check() error {
	if err := checkText("message id", m.ID, MaxMessageID); err != nil {
		return err
	}
	if m.Priority < 0 || m.Priority >= Priorities {
		return Errorf(Invalid, "priority: want 0 to %d, got %d", Priorities-1, m.Priority)
	}
	if m.Version < 0 || m.Version > 0 && m.ID != "" {
		return Errorf(Invalid, "version: want at least 1 and no message id, or no version, got %d", m.Version)
	}
	if err := checkText("content type", m.ContentType, maxLabel); err != nil {
		return err
	}
	if n := len(m.Attributes); n > MaxAttributes {
		return Errorf(Invalid, "attributes: want at most %d, got %d", MaxAttributes, n)
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		value := m.Attributes[name]
		size += len(name) + len(value)
		if err := checkText("name of an attribute", name, maxLabel); err != nil {
			return err
		}
		if err := checkText("attribute "+name, value, MaxAttributeBytes); err != nil {
			return err
		}
	}
	if size > MaxAttributeBytes {
		return Errorf(Invalid, "attributes: want at most %d bytes, got %d", MaxAttributeBytes, size)
	}
	if n := len(m.Payload); n > MaxPayload {
		return Errorf(Invalid, "payload: want at most %d bytes, got %d", MaxPayload, n)
	}
	return nil
}

// CheckText returns an Invalid error unless s is UTF-8 of at most limit bytes without control
// characters. The text of the error begins with the text of the argument what.
func CheckText(what, s string, limit int) error { return checkText(what, s, limit) }

func checkText(what, s string, limit int) error {
	if len(s) > limit {
		return Errorf(Invalid, "%s: want at most %d bytes, got %d", what, limit, len(s))
	}
	if !utf8.ValidString(s) {
		return Errorf(Invalid, "%s: want UTF-8, got %q", what, Shorten(s))
	}
	for _, c := range s {
		if c < ' ' || c == 0x7f {
			return Errorf(Invalid, "%s: want no control characters, got %q", what, Shorten(s))
		}
	}
	return nil
}

// MaxInline is the maximum size, as returned by [Message.InlineBytes], of a payload that is stored
// in the same document as the attributes. A larger payload is stored in the content store.
const MaxInline = 16 << 10

// InlineBytes returns the size that the payload takes in a stored document.
func (m *Message) InlineBytes() int {
	if !utf8.Valid(m.Payload) {
		return base64.StdEncoding.EncodedLen(len(m.Payload))
	}
	text, err := json.Marshal(string(m.Payload))
	if err != nil {
		return len(m.Payload) // unreachable: marshaling a string does not fail
	}
	return len(text)
}

// HasJSON reports whether the payload's content type is a JSON type. A payload without a content
// type counts as JSON.
func (m *Message) HasJSON() bool {
	t, _, err := mime.ParseMediaType(m.ContentType)
	return m.ContentType == "" || err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

// Digest returns a digest of all fields of m except ID. Two messages with the same id count as one
// if their digests are equal.
func (m *Message) Digest() [sha256.Size]byte {
	h := sha256.New()
	write := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	write([]byte{byte(m.Priority)}) //nolint:gosec // below Priorities
	write([]byte(m.ContentType))
	write(m.Payload)
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		write([]byte(name))
		write([]byte(m.Attributes[name]))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
