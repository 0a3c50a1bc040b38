package contract

import (
	"fmt"
	"io"

	"github.com/google/uuid"
)

// idSize is the number of bytes of an id in a list.
const idSize = 16

// AppendID appends an id in the byte order of a .NET GUID: the text of a GUID has five groups, and
// the bytes of the first three groups are reversed.
func AppendID(b []byte, id uuid.UUID) []byte {
	return append(b, id[3], id[2], id[1], id[0], id[5], id[4], id[7], id[6],
		id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15])
}

// EncodeIDs returns ids in the format of a list of ids: 16 bytes for each id.
func EncodeIDs(ids []uuid.UUID) []byte {
	list := make([]byte, 0, len(ids)*idSize)
	for _, id := range ids {
		list = AppendID(list, id)
	}
	return list
}

// DecodeIDs returns the ids in a list. A truncated list fails with io.ErrUnexpectedEOF, because ids
// of the bundle are missing.
func DecodeIDs(list []byte) ([]uuid.UUID, error) {
	if len(list)%idSize != 0 {
		return nil, fmt.Errorf("list of ids: %d bytes are not a multiple of %d, the size of an id: %w", len(list), idSize, io.ErrUnexpectedEOF)
	}
	ids := make([]uuid.UUID, 0, len(list)/idSize)
	for ; len(list) > 0; list = list[idSize:] {
		swapped := uuid.UUID(list[:idSize])
		ids = append(ids, uuid.UUID(AppendID(nil, swapped))) // swapping twice restores the order
	}
	return ids, nil
}
