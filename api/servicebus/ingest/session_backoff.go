package ingest

import (
	"sync"
	"time"
)

const (
	// doubtful is the number of consecutive suspected setbacks that are ignored, because the session
	// is not always the cause of a lost link.
	doubtful = 2

	// watchedSessions is the maximum number of sessions that a sessionBackoff tracks. If a session
	// was dropped because of this limit, its count starts at zero again.
	watchedSessions = 10_000
)

// A sessionBackoff counts the consecutive setbacks of each session: how often the session could not
// be served because of its own fault. After each setback the session must wait longer. A receiver
// that accepts the session too early parks it.
type sessionBackoff struct {
	delay func(count int) time.Duration

	mu        sync.Mutex
	bySession map[string]setbacks
}

type setbacks struct {
	count int
	until time.Time // time until which the session must wait
}

func newBackoff(delay func(count int) time.Duration) *sessionBackoff {
	return &sessionBackoff{delay: delay, bySession: make(map[string]setbacks)}
}

// addSuspected counts a setback that the session may not have caused. Like addCertain, it returns
// the number of consecutive setbacks, without the first doubtful ones.
func (b *sessionBackoff) addSuspected(session string) int { return b.addSetback(session, 0) }

// addCertain counts a setback that the session certainly caused.
func (b *sessionBackoff) addCertain(session string) int { return b.addSetback(session, doubtful) }

func (b *sessionBackoff) addSetback(session string, least int) int {
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

// waitTime returns the remaining wait of a session. It is zero or negative for a session that can
// be served.
func (b *sessionBackoff) waitTime(session string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(b.bySession[session].until)
}

// forget resets the count of a session that was served.
func (b *sessionBackoff) forget(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.bySession, session)
}
