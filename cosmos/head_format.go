package cosmos

import (
	"encoding/json"
)

// A head with a tail has format 2, in its member v and in its operation. A version that
// knows the member v, and not the format, leaves the mailbox alone. One that does not know
// the member either cannot decode an operation that is not a string, and fails before it
// writes: it would drop the tail with its next write of the head. A head without a tail is
// written in format 1. Older versions cannot read the pages of flushes either; so they serve
// the mailbox again when no tail is written, all are flushed, and those pages are removed.
const tailFormat = 2

// A head from which a cabinet was removed keeps format 3. A version that does not
// know RemovedOrdinal would begin the next cabinet with ordinals that were used before.
const removalFormat = 3

// A headWriteID is the id of the last write of a head, and its format unless that is 1.
type headWriteID struct {
	ID     string
	Format int
}

// storedWriteID is the JSON of a headWriteID with a format.
type storedWriteID struct {
	ID     string `json:"id"`
	Format int    `json:"format"`
}

// MarshalJSON implements json.Marshaler.
func (w headWriteID) MarshalJSON() ([]byte, error) {
	if w.Format == 0 {
		return json.Marshal(w.ID)
	}
	return json.Marshal(storedWriteID(w))
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *headWriteID) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		w.Format = 0
		return json.Unmarshal(text, &w.ID)
	}
	return json.Unmarshal(text, (*storedWriteID)(w))
}
