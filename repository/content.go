package repository

import (
	"context"
	"hash/crc32"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// A Section is a part of an object in the content store. The zero Section is empty.
type Section struct {
	Object string
	Offset int64  // position of the first byte
	Length int64  // number of bytes
	Sum    uint32 // CRC-32C of a payload, which the caller compares; Content ignores it
}

// SumOf returns the Sum of a payload.
func SumOf(payload []byte) uint32 { return UpdateSum(0, payload) }

// UpdateSum returns the Sum of a payload that continues with more. sum is the Sum of the bytes before
// more.
func UpdateSum(sum uint32, more []byte) uint32 { return crc32.Update(sum, castagnoli, more) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// IsZero reports whether s is the zero Section.
func (s Section) IsZero() bool { return s == Section{} }

// Content stores objects: byte strings of any length, each under a name. A name is one or more segments
// of A-Z a-z 0-9 . _ - joined by slashes, up to 512 characters in all. No segment is "." or "..". Any
// other name is Invalid.
type Content interface {
	// Put stores the bytes of r under name, and returns once they are durable. An object is written
	// once: if it exists already, Put does not change it and fails with Conflict. No part of a failed
	// Put is ever visible.
	Put(ctx context.Context, name string, r io.Reader) error

	// Open reads a section of an object. It fails with NotFound if the object does not exist, with
	// Damaged if the object is too short, and with Invalid for a negative offset or length. The caller
	// closes the reader, which does not depend on ctx after Open has returned.
	Open(ctx context.Context, s Section) (io.ReadCloser, error)

	// Delete removes an object. Deleting a missing object is not an error.
	Delete(ctx context.Context, name string) error

	// DeleteFolder removes every object whose name begins with folder and a slash. folder has the form
	// of a name. If DeleteFolder fails, it may have removed some objects. It may or may not remove an
	// object that is put into the folder during the call.
	DeleteFolder(ctx context.Context, folder string) error
}

const maxObjectName = 512

var objectName = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)

// CheckObjectName returns an Invalid error unless Content accepts name. It is for implementations.
func CheckObjectName(name string) error {
	segments := strings.Split(name, "/")
	if len(name) > maxObjectName || !objectName.MatchString(name) || slices.Contains(segments, ".") || slices.Contains(segments, "..") {
		return domain.Errorf(domain.Invalid,
			"object name: want up to %d characters: segments of A-Z a-z 0-9 . _ - joined by slashes, no segment . or ..; got %d: %.64q",
			maxObjectName, len(name), name)
	}
	return nil
}
