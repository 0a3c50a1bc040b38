package broker

import (
	"net/http"

	"github.com/messagehub/messagehub/api/internal/etag"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// conditionOf returns the condition that the headers of a PUT request contain. As RFC 9110
// requires, If-Match takes precedence over If-Unmodified-Since.
func conditionOf(r *http.Request) (broker.Condition, error) {
	var c broker.Condition
	if c.Exists, c.Versions = etag.Match(r); c.Exists || c.Versions != nil {
		return c, nil
	}
	lines := r.Header.Values("If-Unmodified-Since")
	if len(lines) == 0 {
		return c, nil
	}
	var err error
	if c.UnmodifiedSince, err = http.ParseTime(lines[0]); err != nil || len(lines) > 1 {
		return c, domain.Errorf(domain.Invalid, "If-Unmodified-Since: want one HTTP date, such as Wed, 25 Nov 2026 20:41:08 GMT, got %q", domain.Shorten(lines[0]))
	}
	return c, nil
}
