package domain

import "encoding/hex"

// An EventID names an event. It is a UUID, unique for each recipient. A domain that does not know
// whether an event arrived sends the event again with the same id.
type EventID [16]byte

// A BundleID names a bundle. It is a UUID, unique for each recipient.
type BundleID [16]byte

// ParseEventID reads the 36-character form of a UUID, in upper or lower case. It returns an Invalid
// error for the nil UUID and any other text.
func ParseEventID(s string) (EventID, error) { id, err := parseUUID("event id", s); return id, err }

// ParseBundleID reads the 36-character form of a UUID, in upper or lower case. It returns an Invalid
// error for the nil UUID and any other text.
func ParseBundleID(s string) (BundleID, error) { id, err := parseUUID("bundle id", s); return id, err }

// String returns the 36-character form in lower case.
func (id EventID) String() string { return formatUUID(id) }

// String returns the 36-character form in lower case.
func (id BundleID) String() string { return formatUUID(id) }

// Append appends the text of the id to b.
func (id EventID) Append(b []byte) []byte { return appendUUID(b, id) }

// uuidDashes are the indexes of the dashes in the text of a UUID.
var uuidDashes = [...]int{8, 13, 18, 23}

func parseUUID(what, s string) (id [16]byte, err error) {
	malformed := func() ([16]byte, error) {
		return [16]byte{}, Errorf(Invalid, "%s: want a UUID such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41, got %q", what, Shorten(s))
	}
	if len(s) != 36 {
		return malformed()
	}
	digits := make([]byte, 0, 32)
	at := 0
	for _, dash := range uuidDashes {
		if s[dash] != '-' {
			return malformed()
		}
		digits = append(digits, s[at:dash]...)
		at = dash + 1
	}
	digits = append(digits, s[at:]...)
	if _, err := hex.Decode(id[:], digits); err != nil {
		return malformed()
	}
	if id == [16]byte{} {
		return id, Errorf(Invalid, "%s: the nil UUID names nothing", what)
	}
	return id, nil
}

func formatUUID(id [16]byte) string { return string(appendUUID(make([]byte, 0, 36), id)) }

func appendUUID(b []byte, id [16]byte) []byte {
	b = hex.AppendEncode(b, id[0:4])
	b = append(b, '-')
	b = hex.AppendEncode(b, id[4:6])
	b = append(b, '-')
	b = hex.AppendEncode(b, id[6:8])
	b = append(b, '-')
	b = hex.AppendEncode(b, id[8:10])
	b = append(b, '-')
	return hex.AppendEncode(b, id[10:16])
}

// Shorten returns s. If s is longer than 64 bytes, Shorten cuts it and appends a mark. Errors and
// logs use it to quote invalid input.
func Shorten(s string) string {
	const limit = 64
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}
