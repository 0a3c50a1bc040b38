package api

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// originalFormat reads the parameter responseformat as .NET reads an enum of Xml
// (0) and Json (1): by name in any case, or by number, where a number that stands
// for nothing is Xml. If that says nothing, the header Accept decides.
func originalFormat(r *http.Request) domain.Format {
	text := strings.TrimSpace(parameter(r, "responseformat"))
	switch n, err := strconv.ParseInt(text, 10, 32); {
	case strings.EqualFold(text, "json"), err == nil && n == 1:
		return domain.JSON
	case strings.EqualFold(text, "xml"), err == nil:
		return domain.XML
	}
	for _, value := range r.Header["Accept"] {
		for element := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(element), "application/json") {
				return domain.JSON
			}
		}
	}
	return domain.XML
}

// originalVersion reads a version as a number; what is none is 1.0.
func originalVersion(text string) string {
	const (
		fallback = "1.0"
		most     = 1e9
	)
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) > most {
		return fallback
	}
	text = strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	if !isWord(text, 32) {
		return fallback
	}
	return text
}

// guidForms are the forms of a GUID that .NET reads, besides that of a UUID: its
// 32 digits alone, or the UUID in braces or parentheses, or hexadecimal numbers.
var (
	plainGUID   = regexp.MustCompile(`^[0-9A-Fa-f]{32}$`)
	wrappedGUID = regexp.MustCompile(`^(?:\{([^{}]+)\}|\(([^()]+)\))$`)
	numberGUID  = regexp.MustCompile(`(?i)^\{0x([0-9a-f]{1,8}),0x([0-9a-f]{1,4}),0x([0-9a-f]{1,4}),\{` +
		strings.Repeat(`0x([0-9a-f]{1,2}),`, 7) + `0x([0-9a-f]{1,2})\}\}$`)
)

// parseGUID reads a bundle id in any form in which .NET reads a GUID.
func parseGUID(text string) (domain.BundleID, bool) {
	text = strings.TrimSpace(text)
	if plainGUID.MatchString(text) {
		text = text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
	} else if m := wrappedGUID.FindStringSubmatch(text); m != nil {
		text = m[1] + m[2]
	} else if m := numberGUID.FindStringSubmatch(strings.ReplaceAll(text, " ", "")); m != nil {
		n := make([]any, len(m)-1)
		for i := range n {
			n[i], _ = strconv.ParseUint(m[i+1], 16, 32) // hexadecimal digits and not too many
		}
		text = fmt.Sprintf("%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", n...)
	}
	id, err := domain.ParseBundleID(text)
	return id, err == nil
}
