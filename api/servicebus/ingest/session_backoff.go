package ingest

import (
	"sync"
	"time"
)

const (
	// doubtful is how often in a row a link may end before a message comes, and nothing
	// is wrong with the session: connections are lost now and then.
	doubtful = 2

	// watchedSessions is the number of sessions that a backoff remembers. The count of a
	// forgotten session starts at zero.
	watchedSessions = 10_000
)

// A backoff counts, for each session, how often in a row it could not be served for a
// reason of its own, and has it wait, longer each time. Who accepts it too early parks
// it.
type backoff struct {
	delay func(count int) time.Duration

	mu        sync.Mutex
	bySession map[string]setbacks
}

type setbacks struct {
	count int
	until time.Time // it is not served before
}

func newBackoff(delay func(count int) time.Duration) *backoff {
	return &backoff{delay: delay, bySession: make(map[string]setbacks)}
}

// addSuspected counts a setback that may have nothing to do with the session. Like addCertain
// it returns how many there are in a row, without those that are doubtful.
func (b *backoff) addSuspected(session string) int { return b.addSetback(session, 0) }

// addCertain counts a setback that certainly concerns the session.
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

// waitTime returns for how long a session should still not be served.
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
