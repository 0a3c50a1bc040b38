package simulate

import (
	"sync"
	"time"
)

// An objectClock is that of a bucket and, apart from their skew, of the nodes. No two times are equal, so
// that what is done and what is asked have an order.
type objectClock struct {
	mu    sync.Mutex
	shift time.Duration // against that of the bubble
	last  time.Time
}

func (c *objectClock) nextTime() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Add(c.shift).Truncate(time.Microsecond)
	if !now.After(c.last) {
		now = c.last.Add(time.Microsecond)
	}
	c.last = now
	return now
}

// advance lets time pass at once.
func (c *objectClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift += d
}
