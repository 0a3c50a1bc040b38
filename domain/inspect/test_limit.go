package inspect

import (
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Limits of test calls on one node within testWindow.
const (
	testWindow      = time.Minute
	testsPerOwner   = 5
	testsAltogether = 30
)

// A testLimiter limits the test calls of each owner and of all owners together. Both are needed, because a client that
// can reach the hub can name any owner.
type testLimiter struct {
	mu    sync.Mutex
	calls []testCall // calls in the window, oldest first
}

type testCall struct {
	at    time.Time
	owner domain.ActorID
}

// acquire counts a test call. If a limit is reached, it returns how long to wait until the next call is allowed.
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

// timeLeft returns how much longer a call counts: at least a second, and at most testWindow, even if the clock was set
// back.
func (l *testLimiter) timeLeft(at, now time.Time) time.Duration {
	return min(max(testWindow-now.Sub(at), time.Second), testWindow)
}
