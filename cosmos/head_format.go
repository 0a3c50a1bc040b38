package cosmos

import (
	"encoding/json"
)

// A head with a tail has format 2, in its member v and in its member operation. A version that knows the
// member v, but not format 2, does not serve the mailbox. Even older versions ignore v. They fail before
// they write, because they cannot decode an operation that is not a string; otherwise their writes would
// drop the tail.
//
// A head without a tail is written in format 1. Versions that do not know tails cannot read flushed pages
// either. They can serve the mailbox again after tails are switched off, all tails are flushed, and the
// flushed pages are removed.
const tailFormat = 2

// A head from which a cabinet was removed remains in format 3. A version that does not know RemovedOrdinal
// would give the next cabinet ordinals that were used before.
const removalFormat = 3

// A headWriteID is the id of the last write of a head, and the format of the head. A zero Format means
// format 1.
type headWriteID struct {
	ID     string
	Format int
}

// A storedWriteID is the JSON of a headWriteID whose Format is not zero.
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
