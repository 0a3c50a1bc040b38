package embedded

import (
	"bytes"
	"crypto/md5" //nolint:gosec // required by the protocol
	"encoding/base64"
	"encoding/binary"
	"hash"
	"hash/crc64"
	"io"
	"net/http"
)

const (
	md5Length   = 16
	crc64Length = 8

	maxChecksumRange = 4 << 20 // maximum length of a range whose checksum a client may request, in bytes
)

// crc64Table is the table for CRC-64/NVME, which Blob Storage uses.
var crc64Table = crc64.MakeTable(0x9A6C9329AC4BC9B5)

// checksums computes the MD5 and the CRC-64 of all bytes that are written to it.
type checksums struct {
	md5, crc64 hash.Hash
}

func newChecksums() checksums {
	return checksums{md5.New(), crc64.New(crc64Table)} //nolint:gosec // required by the protocol
}

// Write implements [io.Writer].
func (s checksums) Write(p []byte) (int, error) {
	_, _ = s.md5.Write(p) // a hash never returns an error
	return s.crc64.Write(p)
}

func (s checksums) encodedMD5() string { return base64.StdEncoding.EncodeToString(s.md5.Sum(nil)) }

// encodedCRC64 returns the CRC-64 in base64, with the lowest byte first.
func (s checksums) encodedCRC64() string {
	sum := binary.LittleEndian.AppendUint64(nil, binary.BigEndian.Uint64(s.crc64.Sum(nil)))
	return base64.StdEncoding.EncodeToString(sum)
}

// claimedChecksums are the checksums that a client has sent. A missing checksum is nil.
type claimedChecksums struct{ md5, crc64 []byte }

// readClaims reads the checksums of a body from the headers. The MD5 is in the first header of md5Headers that is
// present.
func readClaims(h http.Header, crc64Header string, md5Headers ...string) (claimed claimedChecksums, err error) {
	if claimed.crc64, err = readCRC64(h, crc64Header); err != nil {
		return claimed, err
	}
	if claimed.crc64 != nil && h.Get("Content-Md5") != "" {
		return claimed, newBlobError(400, "BothCrc64AndMd5HeaderPresent", "the headers have an MD5 and a CRC-64; send one")
	}
	for _, name := range md5Headers {
		if claimed.md5, err = readMD5(h, name); claimed.md5 != nil || err != nil {
			return claimed, err
		}
	}
	return claimed, nil
}

// isEmpty reports whether the client sent no checksum.
func (c claimedChecksums) isEmpty() bool { return c.md5 == nil && c.crc64 == nil }

// verify returns an error if the content does not have the checksums that the client has sent.
func (c claimedChecksums) verify(s checksums) error {
	if c.md5 != nil && !bytes.Equal(c.md5, s.md5.Sum(nil)) {
		return newBlobError(400, "Md5Mismatch", "the MD5 in the headers differs from the MD5 of the received content")
	}
	if c.crc64 != nil && base64.StdEncoding.EncodeToString(c.crc64) != s.encodedCRC64() {
		return newBlobError(400, "Crc64Mismatch", "the CRC-64 in the headers differs from the CRC-64 of the received content")
	}
	return nil
}

// readMD5 reads an MD5 from a header. It returns nil if the header is missing.
func readMD5(h http.Header, name string) ([]byte, error) {
	text := h.Get(name)
	if text == "" {
		return nil, nil
	}
	sum, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sum) != md5Length {
		return nil, newBlobError(400, "InvalidMd5", "header %s: want %d bytes in base64", name, md5Length)
	}
	return sum, nil
}

// readOwnHash reads a hash that a client has computed for a blob. As on Azure, it is stored as the MD5 although it need
// not be one. It returns nil if the header is missing.
func readOwnHash(h http.Header, name string) ([]byte, error) {
	const maxLength = 64
	sum, err := base64.StdEncoding.DecodeString(h.Get(name))
	if err != nil || len(sum) > maxLength {
		return nil, newBlobError(400, "InvalidMd5", "header %s: want up to %d bytes in base64", name, maxLength)
	}
	if len(sum) == 0 {
		return nil, nil
	}
	return sum, nil
}

// readCRC64 reads a CRC-64 from a header. It returns nil if the header is missing.
func readCRC64(h http.Header, name string) ([]byte, error) {
	text := h.Get(name)
	if text == "" {
		return nil, nil
	}
	sum, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sum) != crc64Length {
		return nil, newBlobError(400, "InvalidHeaderValue", "header %s: want %d bytes in base64", name, crc64Length)
	}
	return sum, nil
}

// setRangeChecksum adds a header with the checksum of a range, if the request asks for it.
func setRangeChecksum(resp, request http.Header, content io.ReaderAt, part span) error {
	wantsMD5, wantsCRC64 := request.Get("X-Ms-Range-Get-Content-Md5") == "true", request.Get("X-Ms-Range-Get-Content-Crc64") == "true"
	switch {
	case !wantsMD5 && !wantsCRC64:
		return nil
	case wantsMD5 && wantsCRC64:
		return newBlobError(400, "InvalidHeaderValue", "the headers request the MD5 and the CRC-64 of a range; request one")
	case part.whole:
		return newBlobError(400, "InvalidHeaderValue", "the headers request the checksum of a range, and have no range")
	case part.length > maxChecksumRange:
		return newBlobError(400, "OutOfRangeInput", "the checksum can be requested for ranges of up to %d bytes, and this range has %d", maxChecksumRange, part.length)
	}
	sums := newChecksums()
	if _, err := io.Copy(sums, io.NewSectionReader(content, part.from, part.length)); err != nil {
		return err
	}
	if wantsMD5 {
		resp.Set("Content-Md5", sums.encodedMD5())
	} else {
		resp.Set("X-Ms-Content-Crc64", sums.encodedCRC64())
	}
	return nil
}
