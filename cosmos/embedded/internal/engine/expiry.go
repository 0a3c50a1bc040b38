package engine

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// ttlNever is the ttl value with which a document never expires.
const ttlNever = -1

// parseTTL parses the ttl property of a document.
func parseTTL(raw []byte) (int32, error) {
	if raw == nil || string(raw) == "null" {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < ttlNever || n == 0 || n > math.MaxInt32 {
		return 0, badRequest("ttl %s: want a number of seconds from 1 to %d, or -1", raw, math.MaxInt32)
	}
	return int32(n), nil
}

func parseDefaultTTL(n *json.Number) (*int32, error) {
	if n == nil {
		return nil, nil //nolint:nilnil // no default: no document expires
	}
	ttl, err := parseTTL([]byte(n.String()))
	if err != nil {
		return nil, badRequest("container: defaultTtl %s: want a number of seconds from 1 to %d, or -1", n, math.MaxInt32)
	}
	return &ttl, nil
}

// hasExpired reports whether a document has expired. An expired document is invisible; a sweep frees its space.
func (c *Container) hasExpired(s storedDocument, now time.Time) bool {
	if c.ttl == nil {
		return false // the ttl of a document is ignored unless the container has one
	}
	life := *c.ttl
	if s.ttl != 0 {
		life = s.ttl
	}
	return life != ttlNever && now.Unix() >= s.changed+int64(life)
}

// expiryTime returns the current time for hasExpired. It skips reading the clock if no document of c can expire.
func (e *Engine) expiryTime(c *Container) (now time.Time) {
	if c.ttl != nil {
		now = e.clock()
	}
	return now
}
