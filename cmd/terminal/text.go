package terminal

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clip shortens s to limit runes. If it cuts runes off, the last rune of the result is an ellipsis.
func Clip(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// Printable replaces control characters, and the marks that change the direction
// of text, so that a text from an untrusted source cannot control the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r) {
			return '?'
		}
		return r
	}, s)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// ShellWord quotes s for a POSIX shell if necessary.
func ShellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// CountOf returns a number with its noun, such as "1,234 events".
func CountOf(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return groupThousands(n) + " " + thing + "s"
}

// groupThousands groups the digits of n by three. n must not be negative.
func groupThousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
