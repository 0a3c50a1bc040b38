package simulate

import (
	"sync"
	"time"
)

// An objectClock is the clock of a bucket and, apart from their skew, of its nodes. All its times are distinct, so
// events and requests have an order.
type objectClock struct {
	mu    sync.Mutex
	shift time.Duration // from the clock of the bubble
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

// advance moves the clock forward.
func (c *objectClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift += d
}
