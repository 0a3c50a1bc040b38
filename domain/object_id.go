package domain

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
)

// An ObjectID identifies an object in the API. If Row is set, it identifies the row of that event.
// A row's id never changes, even if the row is moved to a new place.
//
// The text of an id is the base64url encoding of
//
//	1  bucket  key                                 of an object
//	1  bucket  key  1  type  version  sequencer    of an event with a sequencer
//	1  bucket  key  2  message  index              of an event without sequencer
//
// where each text is preceded by its length, and each number is a varint.
type ObjectID struct {
	Name ObjectName
	Row  ObjectRowID
}

const (
	objectIDFormat = 1
	nativeRow      = 1
	generatedRow   = 2
)

var objectIDEncoding = base64.RawURLEncoding.Strict()

// String returns the id as base64url.
func (id ObjectID) String() string {
	b := []byte{objectIDFormat}
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(id.Name.Bucket())
	text(id.Name.Key())
	switch r := &id.Row; {
	case *r == (ObjectRowID{}):
	case r.Carrier == (Carrier{}):
		b = append(b, nativeRow, byte(r.Type)) //nolint:gosec // there are two types
		text(r.Version.String())
		text(r.Sequencer)
	default:
		b = append(b, generatedRow)
		text(r.Carrier.Message)
		b = binary.AppendUvarint(b, uint64(r.Carrier.Index)) //nolint:gosec // an index is not negative
	}
	return objectIDEncoding.EncodeToString(b)
}

// ParseObjectID parses the text that [ObjectID.String] returns. It returns an Invalid error for any
// other text.
func ParseObjectID(s string) (ObjectID, error) {
	malformed := Errorf(Invalid, "object id: want the id of an object or a row, as a list has it, got %q", Shorten(s))
	b, err := objectIDEncoding.DecodeString(s)
	if err != nil {
		return ObjectID{}, malformed
	}
	r := objectIDReader{rest: b}
	format, bucket, key := r.number(), r.text(), r.text()
	name, err := ParseObjectName(bucket, key)
	if err != nil || format != objectIDFormat {
		return ObjectID{}, malformed
	}
	id := ObjectID{Name: name}
	switch r.number() {
	case nativeRow:
		id.Row.Type = ObjectEventType(r.number()) //nolint:gosec // checked below, by its text
		id.Row.Version, err = ParseVersionID(r.text())
		id.Row.Sequencer = r.text()
	case generatedRow:
		id.Row.Carrier = Carrier{Message: r.text(), Index: int(r.number())} //nolint:gosec // checked below, by its text
	}
	if err != nil || id.String() != s {
		return ObjectID{}, malformed
	}
	return id, nil
}

// An objectIDReader reads the parts of an id. After the end of the id, it returns empty parts.
type objectIDReader struct{ rest []byte }

func (r *objectIDReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest = nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *objectIDReader) text() string {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.rest = nil
		return ""
	}
	text := bytes.Clone(r.rest[:n])
	r.rest = r.rest[n:]
	return string(text)
}
