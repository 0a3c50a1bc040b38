package inspect

import (
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Limits of the test calls of one node in a window of testWindow.
const (
	testWindow      = time.Minute
	testsPerOwner   = 5
	testsAltogether = 30
)

// A testLimiter limits the test calls of each owner, and of all owners together. The second limit
// is needed because any client that can reach the hub can name any owner.
type testLimiter struct {
	mu    sync.Mutex
	calls []testCall // calls in the window, the oldest first
}

type testCall struct {
	at    time.Time
	owner domain.ActorID
}

// acquire counts a call of an owner. If a limit is reached, it returns the time until the next call
// is permitted.
func (l *testLimiter) acquire(owner domain.ActorID, now time.Time) (pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.calls) > 0 && now.Sub(l.calls[0].at) >= testWindow {
		l.calls = l.calls[1:]
	}
	if n := len(l.calls); n >= testsAltogether {
		return l.timeLeft(l.calls[n-testsAltogether].at, now)
	}
	var own []time.Time
	for _, c := range l.calls {
		if c.owner == owner {
			own = append(own, c.at)
		}
	}
	if n := len(own); n >= testsPerOwner {
		return l.timeLeft(own[n-testsPerOwner], now)
	}
	l.calls = append(l.calls, testCall{now, owner})
	return 0
}

// timeLeft returns the remaining time in which a call counts: from one second to testWindow, even
// if the clock was set back.
func (l *testLimiter) timeLeft(at, now time.Time) time.Duration {
	return min(max(testWindow-now.Sub(at), time.Second), testWindow)
}
