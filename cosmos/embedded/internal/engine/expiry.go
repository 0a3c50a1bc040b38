package engine

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// ttlNever is the time to live that never ends.
const ttlNever = -1

// parseTTL reads the property ttl of a document.
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
		return nil, nil //nolint:nilnil // no default: nothing expires
	}
	ttl, err := parseTTL([]byte(n.String()))
	if err != nil {
		return nil, badRequest("container: defaultTtl %s: want a number of seconds from 1 to %d, or -1", n, math.MaxInt32)
	}
	return &ttl, nil
}

// hasExpired reports whether a document has outlived its time. Nobody sees it
// from then on, although it takes its place until it is swept away.
func (c *Container) hasExpired(s storedDocument, now time.Time) bool {
	if c.ttl == nil {
		return false // the ttl of a document counts only where the container has one
	}
	life := *c.ttl
	if s.ttl != 0 {
		life = s.ttl
	}
	return life != ttlNever && now.Unix() >= s.changed+int64(life)
}

// expiryTime is the time for expired. Where nothing expires, it saves asking.
func (e *Engine) expiryTime(c *Container) (now time.Time) {
	if c.ttl != nil {
		now = e.clock()
	}
	return now
}
