package api

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// originalFormat reads the parameter responseformat as .NET reads an enum of Xml (0) and Json (1):
// by name in upper or lower case, or by number. Unknown numbers mean Xml. Without a valid
// parameter, it uses the header Accept.
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

// originalVersion parses a version as a number. It returns 1.0 for any other text.
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

// parseGUID parses a bundle id in any format in which .NET reads a GUID.
func parseGUID(text string) (domain.BundleID, bool) {
	uuid, ok := domain.FromGUID(text)
	if !ok {
		return domain.BundleID{}, false
	}
	id, err := domain.ParseBundleID(uuid)
	return id, err == nil
}
