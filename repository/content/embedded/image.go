package embedded

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
)

// A file ends with its properties, so that content can be written before they
// are known:
//
//	content | properties, JSON | CRC-32C of these, 4 bytes | their length, 4 bytes | magic
const (
	magic      = "MHBLOB01"
	tailLength = 8 + len(magic)
	maxJSON    = 128 << 10 // a name, headers and metadata at their limits take 84 KB, six bytes for each of some characters
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeVersion returns what follows the content of v.
func encodeVersion(v *version) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(text) > maxJSON { // it could not be read again, and nothing beside it
		return nil, fmt.Errorf("the properties would have %d bytes, more than %d", len(text), maxJSON)
	}
	tail := binary.BigEndian.AppendUint32(nil, crc32.Checksum(text, castagnoli))
	tail = binary.BigEndian.AppendUint32(tail, uint32(len(text))) //nolint:gosec // far below
	return slices.Concat(text, tail, []byte(magic)), nil
}

// readVersion returns the version in a file.
func readVersion(root *os.Root, name string) (*version, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	v, err := decodeVersion(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s is damaged; move it away to go on without it: %w", name, err)
	}
	return v, nil
}

func decodeVersion(r io.ReaderAt, length int64) (*version, error) {
	const most = 4 << 10 // read at once; few need more
	last := make([]byte, min(length, most))
	if _, err := r.ReadAt(last, length-int64(len(last))); err != nil {
		return nil, err
	}
	if len(last) < tailLength || string(last[len(last)-len(magic):]) != magic {
		return nil, fmt.Errorf("it does not end with %s", magic)
	}
	tail := last[len(last)-tailLength:]
	n := int64(binary.BigEndian.Uint32(tail[4:]))
	size := length - int64(tailLength) - n
	if n > maxJSON || size < 0 {
		return nil, fmt.Errorf("its properties cannot have %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, size); err != nil {
		return nil, err
	}
	if crc32.Checksum(text, castagnoli) != binary.BigEndian.Uint32(tail) {
		return nil, fmt.Errorf("its properties are not what was written")
	}
	v := &version{size: size}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, err
	}
	return v, nil
}
