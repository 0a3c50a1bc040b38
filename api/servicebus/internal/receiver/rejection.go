package receiver

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxDescription is the maximum size of the description of a dead letter on the bus, in bytes.
const MaxDescription = 4096

// Reject returns a Rejection with the reason and a formatted description, which is shortened to
// MaxDescription bytes.
func Reject(reason, format string, args ...any) *Rejection {
	return &Rejection{Reason: reason, Description: cutText(strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD"), MaxDescription)}
}

// cutText returns s if it has at most limit bytes. Otherwise it returns the start of s with a mark.
func cutText(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(mark)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
