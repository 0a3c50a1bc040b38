package receiver

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxDescription is the number of bytes of a description that the bus keeps.
const MaxDescription = 4096

// Reject returns a Rejection whose description has up to MaxDescription bytes.
func Reject(reason, format string, args ...any) *Rejection {
	return &Rejection{Reason: reason, Description: cutText(strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD"), MaxDescription)}
}

// cutText returns the first limit bytes of s, with a mark if it was longer.
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
