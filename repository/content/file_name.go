package content

import (
	"strings"

	"github.com/messagehub/messagehub/repository"
)

const maxSegment = 200 // limit for a file name; most file systems permit 255 bytes

// FilePath returns the path of the object name below the root of a Dir: the name with an equals sign at its
// end. Different names have different paths, and the path of a name is never a folder in the path of
// another name. A segment that is too long for a file name is split into folders, which end with a plus
// sign:
//
//	a/b            a/b=
//	a/bbbb…bbbb    a/bbb…+/…bbb=
func FilePath(name string) (string, error) {
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
