package ingest

import (
	"sync"
	"time"
)

const (
	// doubtful is how often in a row a link may end before a message comes
	// without a fault of the session: connections are lost now and then.
	doubtful = 2

	// watchedSessions is the number of sessions in a backoff. The count of a
	// forgotten session starts at zero.
	watchedSessions = 10_000
)

// A backoff counts, for each session, how often in a row it could not be served
// because of the session itself, and makes it wait, longer each time. A
// receiver that accepts the session too early parks it.
type backoff struct {
	delay func(count int) time.Duration

	mu        sync.Mutex
	bySession map[string]setbacks
}

type setbacks struct {
	count int
	until time.Time // the session is not served before
}

func newBackoff(delay func(count int) time.Duration) *backoff {
	return &backoff{delay: delay, bySession: make(map[string]setbacks)}
}

// addSuspected counts a setback that may not be caused by the session. Like
// addCertain it returns the number of consecutive setbacks, minus the doubtful
// ones.
func (b *backoff) addSuspected(session string) int { return b.addSetback(session, 0) }

// addCertain counts a setback that is certainly caused by the session.
func (b *backoff) addCertain(session string) int { return b.addSetback(session, doubtful) }

func (b *backoff) addSetback(session string, least int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, known := b.bySession[session]
	if !known && len(b.bySession) == watchedSessions {
		for one := range b.bySession {
			delete(b.bySession, one)
			break
		}
	}
	r.count = max(r.count, least) + 1
	counted := max(0, r.count-doubtful)
	if counted > 0 {
		r.until = time.Now().Add(b.delay(counted))
	}
	b.bySession[session] = r
	return counted
}

// waitTime returns how long a session should still not be served.
func (b *backoff) waitTime(session string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(b.bySession[session].until)
}

// forget resets the count of a session that works.
func (b *backoff) forget(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.bySession, session)
}
