package content

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

const (
	maxName    = 512
	maxSegment = 200 // of a file name; most file systems take 255 bytes
)

var wellFormed = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)

// fileOf returns the path of the object name below the root: the name itself,
// marked at its end as an object. No two names have the same path, and none has
// a path that is a folder of another. A segment that is too long for a file name
// goes on in a folder, marked as well:
//
//	a/b            a/b=
//	a/bbbb…bbbb    a/bbb…+/…bbb=
func fileOf(name string) (string, error) {
	segments := strings.Split(name, "/")
	if len(name) > maxName || !wellFormed.MatchString(name) || slices.Contains(segments, ".") || slices.Contains(segments, "..") {
		return "", domain.Errorf(domain.Invalid, "object name: want segments of A-Z a-z 0-9 . _ - joined by slashes, none of them . or .., in all at most %d characters, got %s", maxName, clip(name))
	}
	var parts []string
	for _, s := range segments {
		for ; len(s) > maxSegment; s = s[maxSegment:] {
			parts = append(parts, s[:maxSegment]+"+")
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "/") + "=", nil
}

// clip quotes a faulty name, short enough for an error.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q… (%d characters)", s[:most], len(s))
}
