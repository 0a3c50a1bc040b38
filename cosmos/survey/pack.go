package survey

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
)

// The lines of a document are compressed. The uncompressed format of a line is the recipient and the
// record, each preceded by its length. The last four bytes of the compressed lines are the CRC-32C of the
// preceding bytes.

const (
	// partBytes is the limit for the uncompressed lines of a document. The cost of writing a byte is lowest
	// in documents of 16 to 64 KB.
	partBytes = 48 << 10
	// maxUnpacked is the limit for the decompressed lines of a document.
	maxUnpacked = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A packer packs lines into documents.
type packer struct {
	parts [][]byte // compressed lines of each document
	plain []byte
}

// add adds a line.
func (p *packer) add(recipient string, record []byte) {
	if n := len(recipient) + len(record) + 2*binary.MaxVarintLen32; len(p.plain) > 0 && len(p.plain)+n > partBytes {
		p.closePart()
	}
	p.plain = binary.AppendUvarint(p.plain, uint64(len(recipient)))
	p.plain = append(p.plain, recipient...)
	p.plain = binary.AppendUvarint(p.plain, uint64(len(record)))
	p.plain = append(p.plain, record...)
}

// closePart compresses the collected lines as one part.
func (p *packer) closePart() {
	if len(p.plain) == 0 {
		return
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		panic(err) // impossible: the compression level is valid
	}
	_, _ = w.Write(p.plain) // a write to a buffer never fails
	_ = w.Close()
	p.parts = append(p.parts, binary.LittleEndian.AppendUint32(b.Bytes(), crc32.Checksum(b.Bytes(), castagnoli)))
	p.plain = p.plain[:0]
}

// allParts compresses the remaining lines and returns all parts.
func (p *packer) allParts() [][]byte {
	p.closePart()
	return p.parts
}

var errLines = errors.New("the lines of a document cannot be unpacked")

// unpackLines calls use for each line of a document. use may retain the record.
func unpackLines(lines []byte, use func(recipient string, record []byte)) error {
	end := len(lines) - 4
	if end < 0 || crc32.Checksum(lines[:end], castagnoli) != binary.LittleEndian.Uint32(lines[end:]) {
		return errLines
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(lines[:end])), maxUnpacked+1))
	if err != nil || len(plain) > maxUnpacked {
		return errLines
	}
	next := func() ([]byte, bool) {
		n, size := binary.Uvarint(plain)
		if size <= 0 || n > uint64(len(plain)-size) { //nolint:gosec // size is at most len(plain)
			return nil, false
		}
		field := plain[size : size+int(n)] //nolint:gosec // not longer than plain
		plain = plain[size+int(n):]        //nolint:gosec // as above
		return field, true
	}
	for len(plain) > 0 {
		recipient, ok := next()
		record, ok2 := next()
		if !ok || !ok2 {
			return errLines
		}
		use(string(recipient), bytes.Clone(record))
	}
	return nil
}
