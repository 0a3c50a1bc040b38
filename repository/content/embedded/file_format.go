package embedded

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/checksum"
)

// The properties are at the end of a file, so that content can be written before the properties are
// known:
//
//	content | properties, JSON | CRC-32C of the properties, 4 bytes | their length, 4 bytes | magic
const (
	magic      = magicName + "01"
	magicName  = "MHBLOB" // followed by the format number
	tailLength = 8 + len(magic)
	maxJSON    = 128 << 10 // maximum bytes of properties; the largest take 97 KB, because some characters take six bytes
)

// ErrFormat reports a folder, or a file in it, that a newer version of this program has written.
var ErrFormat = errors.New("it was written by a newer version; open it with that version, or use another folder")

// FileFormat is the version of the folder's format.
const FileFormat = 1

// formatFile is a file with the format number of a folder. Its second line is the version of the program that wrote the
// folder. A folder without this file has format 1.
const formatFile = "+format"

// checkFormat returns ErrFormat if this version cannot read the format of a folder.
func checkFormat(root *os.Root) error {
	text, err := root.ReadFile(formatFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	number, version, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	switch number = strings.TrimSpace(number); {
	case number == strconv.Itoa(FileFormat):
		return nil
	case version != "":
		return fmt.Errorf("%w: the file %s has format %.20q, and this version reads %d; version %.40q wrote it, so use that version or a newer one", ErrFormat, formatFile, number, FileFormat, version)
	default:
		return fmt.Errorf("%w: the file %s has format %.20q, and this version reads %d", ErrFormat, formatFile, number, FileFormat)
	}
}

// encodeVersion encodes the properties of v, which follow the content in a file. If they are too long with the block
// list, it removes the list from v.
func encodeVersion(v *version) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(text) > maxJSON && v.Blocks != nil {
		v.Blocks, v.BlocksLeftOut = nil, true
		return encodeVersion(v)
	}
	if len(text) > maxJSON { // readVersion could not read longer properties
		return nil, fmt.Errorf("the properties would have %d bytes, more than %d", len(text), maxJSON)
	}
	tail := binary.BigEndian.AppendUint32(nil, checksum.Compute(text))
	tail = binary.BigEndian.AppendUint32(tail, uint32(len(text))) //nolint:gosec // bounded by maxJSON
	return slices.Concat(text, tail, []byte(magic)), nil
}

// readVersion reads the properties of the version in a file.
func readVersion(root *os.Root, name string) (*version, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // no data can be lost, because the file is only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	v, err := decodeVersion(f, info.Size())
	if errors.Is(err, ErrFormat) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged; move it away to open the account without it: %w", name, err)
	}
	return v, nil
}

func decodeVersion(r io.ReaderAt, length int64) (*version, error) {
	const tailBytes = 4 << 10 // bytes at the end of the file that are read first; few properties are longer
	last := make([]byte, min(length, tailBytes))
	if _, err := r.ReadAt(last, length-int64(len(last))); err != nil {
		return nil, err
	}
	if end := string(last[max(0, len(last)-len(magic)):]); strings.HasPrefix(end, magicName) && end > magic {
		return nil, fmt.Errorf("%w: the file ends with %q, this version reads %s", ErrFormat, end, magic)
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
	if checksum.Compute(text) != binary.BigEndian.Uint32(tail) {
		return nil, fmt.Errorf("its properties do not match their checksum")
	}
	v := &version{size: size}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, err
	}
	return v, nil
}
