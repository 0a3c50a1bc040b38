package servicebus

import (
	"sync"
	"time"
)

// watchedSessions is how many sessions setbacks remember. Who is forgotten is counted
// anew.
const watchedSessions = 10_000

// Setbacks count, for each session, how often in a row it could not be served for a
// reason of its own, and have it wait, longer each time. Whoever accepts it too early
// sets it aside.
type setbacks struct {
	delay func(count int) time.Duration

	mu   sync.Mutex
	rows map[string]row
}

type row struct {
	count int
	until time.Time // it is not served before
}

func newSetbacks(delay func(count int) time.Duration) *setbacks {
	return &setbacks{delay: delay, rows: make(map[string]row)}
}

// add counts a setback, and returns how many there are in a row.
func (b *setbacks) add(session string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, known := b.rows[session]
	if !known && len(b.rows) == watchedSessions {
		for one := range b.rows {
			delete(b.rows, one)
			break
		}
	}
	r.count++
	r.until = time.Now().Add(b.delay(r.count))
	b.rows[session] = r
	return r.count
}

// wait returns for how long a session should still not be served.
func (b *setbacks) wait(session string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(b.rows[session].until)
}

// forget says that a session is well.
func (b *setbacks) forget(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rows, session)
}
