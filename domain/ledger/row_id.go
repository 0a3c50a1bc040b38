package ledger

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"

	"github.com/messagehub/messagehub/domain"
)

// A RowID names a row in the API: its object, and the event that made it. It is stable: what a row
// has for other events, or its generated place, has no influence on it.
//
// Its text is base64url of
//
//	1  bucket  key  1  type  version  sequencer    of an event with a sequencer
//	1  bucket  key  2  message  index              of another one
//
// with each text behind its length, and each number as a varint.
type RowID struct {
	Name domain.ObjectName
	Row  domain.ObjectRowID
}

const (
	rowIDFormat  = 1
	nativeRow    = 1
	generatedRow = 2
)

var rowIDEncoding = base64.RawURLEncoding.Strict()

// String returns the text of the id.
func (id RowID) String() string {
	b := []byte{rowIDFormat}
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(id.Name.Bucket())
	text(id.Name.Key())
	r := &id.Row
	if r.Carrier == (domain.Carrier{}) {
		b = append(b, nativeRow, byte(r.Type)) //nolint:gosec // there are two types
		text(r.Version.String())
		text(r.Sequencer)
	} else {
		b = append(b, generatedRow)
		text(r.Carrier.Message)
		b = binary.AppendUvarint(b, uint64(r.Carrier.Index)) //nolint:gosec // an index is not negative
	}
	return rowIDEncoding.EncodeToString(b)
}

// ParseRowID reads the text of an id. What String returns for no id is an Invalid error.
func ParseRowID(s string) (RowID, error) {
	malformed := domain.Errorf(domain.Invalid, "object id: want the id of a row as a list has it, got %q", domain.Clip(s))
	b, err := rowIDEncoding.DecodeString(s)
	if err != nil {
		return RowID{}, malformed
	}
	r := rowIDReader{rest: b}
	format, bucket, key := r.number(), r.text(), r.text()
	name, err := domain.ParseObjectName(bucket, key)
	if err != nil || format != rowIDFormat {
		return RowID{}, malformed
	}
	id := RowID{Name: name}
	switch r.number() {
	case nativeRow:
		id.Row.Type = domain.ObjectEventType(r.number()) //nolint:gosec // checked below, by its text
		id.Row.Version, err = domain.ParseVersionID(r.text())
		id.Row.Sequencer = r.text()
	case generatedRow:
		id.Row.Carrier = domain.Carrier{Message: r.text(), Index: int(r.number())} //nolint:gosec // checked below, by its text
	}
	if err != nil || id.Row == (domain.ObjectRowID{}) || id.String() != s {
		return RowID{}, malformed
	}
	return id, nil
}

// A rowIDReader reads the parts of an id. Behind the end, they are empty.
type rowIDReader struct{ rest []byte }

func (r *rowIDReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest = nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *rowIDReader) text() string {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.rest = nil
		return ""
	}
	text := bytes.Clone(r.rest[:n])
	r.rest = r.rest[n:]
	return string(text)
}
