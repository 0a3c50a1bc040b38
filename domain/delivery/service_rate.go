package delivery

import (
	"time"

	"golang.org/x/time/rate"
)

// A receiver with a MaxRate has a token for each call, from a bucket that fills at the rate and has
// those of a tenth of a second, at least one. A cursor without a token is not offered, so it keeps no
// worker from others, and is woken by its timer. Another owner begins with a full bucket.

// followRate has the calls of the service follow the rate of its receiver.
func (s *service) followRate() {
	switch {
	case s.receiver == nil || s.receiver.MaxRate == 0:
		s.limiter = nil
	case s.limiter == nil || s.limiter.Limit() != rate.Limit(s.receiver.MaxRate):
		s.limiter = rate.NewLimiter(rate.Limit(s.receiver.MaxRate), max(int(s.receiver.MaxRate/10), 1))
	}
}

// waitForToken returns for how long the rate forbids a call at a time. It is 0 if a call may begin.
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

// takeToken notes that a call begins.
func (s *service) takeToken() {
	if s.limiter != nil {
		s.limiter.AllowN(time.Now(), 1)
	}
}
