package delivery

import (
	"time"

	"golang.org/x/time/rate"
)

// Each call of a receiver with a MaxRate needs a token. The tokens come from a bucket that
// fills at the rate and holds the tokens of a tenth of a second, at least one token. A cursor
// without a token is not offered, so it occupies no worker, and its timer wakes it. The next owner
// begins with a full bucket.

// followRate sets the limiter to the rate of the receiver.
func (s *service) followRate() {
	switch {
	case s.receiver == nil || s.receiver.MaxRate == 0:
		s.limiter = nil
	case s.limiter == nil || s.limiter.Limit() != rate.Limit(s.receiver.MaxRate):
		s.limiter = rate.NewLimiter(rate.Limit(s.receiver.MaxRate), max(int(s.receiver.MaxRate/10), 1))
	}
}

// waitForToken returns how long the next call has to wait, counted from at. It is 0 if a call
// may begin.
func (s *service) waitForToken(at time.Time) time.Duration {
	if s.limiter == nil {
		return 0
	}
	missing := 1 - s.limiter.TokensAt(at)
	if missing <= 0 {
		return 0
	}
	return max(time.Duration(missing/float64(s.limiter.Limit())*float64(time.Second)), time.Millisecond)
}

// takeToken takes the token of a call that begins.
func (s *service) takeToken() {
	if s.limiter != nil {
		s.limiter.AllowN(time.Now(), 1)
	}
}
