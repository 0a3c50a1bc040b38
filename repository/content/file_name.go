package content

import (
	"strings"

	"github.com/messagehub/messagehub/repository"
)

const maxSegment = 200 // limit for a file name; most file systems permit 255 bytes

// FileOf returns the path of the object name below the root of a Dir: the name with a mark at its end.
// No two names have the same path, and no path of a name is a folder in the path of another. A segment
// that is too long for a file name continues in a folder, which is marked as well:
//
//	a/b            a/b=
//	a/bbbb…bbbb    a/bbb…+/…bbb=
func FileOf(name string) (string, error) {
	if err := repository.CheckObjectName(name); err != nil {
		return "", err
	}
	var parts []string
	for s := range strings.SplitSeq(name, "/") {
		for ; len(s) > maxSegment; s = s[maxSegment:] {
			parts = append(parts, s[:maxSegment]+"+")
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "/") + "=", nil
}
