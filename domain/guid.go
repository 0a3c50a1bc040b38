package domain

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The forms of a GUID that .NET reads, other than the usual form of a UUID: 32 digits without
// dashes, the UUID in braces or parentheses, and hexadecimal numbers.
var (
	plainGUID   = regexp.MustCompile(`^[0-9A-Fa-f]{32}$`)
	wrappedGUID = regexp.MustCompile(`^(?:\{([^{}]+)\}|\(([^()]+)\))$`)
	numberGUID  = regexp.MustCompile(`(?i)^\{0x([0-9a-f]{1,8}),0x([0-9a-f]{1,4}),0x([0-9a-f]{1,4}),\{` +
		strings.Repeat(`0x([0-9a-f]{1,2}),`, 7) + `0x([0-9a-f]{1,2})\}\}$`)
)

// FromGUID returns the UUID for a GUID in any form that .NET reads, because clients of the
// original hub may use all of these forms. The result has 36 characters in lower case. The nil
// UUID is valid.
func FromGUID(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if len(text) == 36 {
		return canonicalUUID(text)
	}
	if plainGUID.MatchString(text) {
		return canonicalUUID(text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:])
	}
	if m := wrappedGUID.FindStringSubmatch(text); m != nil {
		return canonicalUUID(m[1] + m[2])
	}
	if m := numberGUID.FindStringSubmatch(strings.ReplaceAll(text, " ", "")); m != nil {
		n := make([]any, len(m)-1)
		for i := range n {
			n[i], _ = strconv.ParseUint(m[i+1], 16, 32) // cannot fail: the pattern matches up to 8 hexadecimal digits
		}
		return canonicalUUID(fmt.Sprintf("%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", n...))
	}
	return "", false
}

const nilUUID = "00000000-0000-0000-0000-000000000000"

func canonicalUUID(text string) (string, bool) {
	text = strings.ToLower(text)
	if _, err := parseUUID("guid", text); err != nil && text != nilUUID {
		return "", false
	}
	return text, true
}
