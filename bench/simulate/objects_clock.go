package simulate

import (
	"sync"
	"time"
)

// An objectClock is the clock of a bucket and of the nodes, whose clocks differ from it only by their skew. All times
// that it returns are distinct, so the times determine the order of events and requests.
type objectClock struct {
	mu    sync.Mutex
	shift time.Duration // difference from the clock of the bubble
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
