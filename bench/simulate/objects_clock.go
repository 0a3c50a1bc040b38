package simulate

import (
	"sync"
	"time"
)

// An objectClock is the clock of a bucket and of the nodes; a node adds its skew. All times that the clock returns are
// distinct, so the times determine the order of events and requests.
type objectClock struct {
	mu    sync.Mutex
	shift time.Duration // difference from the simulated clock
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
