package domain

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// A Policy determines when a failed delivery is attempted again, and when it becomes a dead letter.
type Policy struct {
	Attempts int // maximum number of calls for one delivery

	// Delays[n] is the time between the n-th failure and the next attempt. If Delays is empty, the
	// time is First after the first failure, and doubles after each further failure, up to Max.
	Delays     []time.Duration
	First, Max time.Duration
	Jitter     bool // vary the time to the next attempt randomly by up to a fifth

	// Period is set for watches: after the n-th failure, the next attempt is 2^(n-1) periods after
	// the event. Period replaces Delays and First. If Period is set, an answer with status 410 does
	// not pause the cursor.
	Period time.Duration

	Only200    bool          // only status 200 counts as success; otherwise any 2xx does
	BreakAfter int           // number of consecutive failures that open the breaker; 0: the breaker never opens
	BreakFor   time.Duration // time for which the breaker is open before one call probes the receiver
}

// The HTTP statuses that have a special meaning for deliveries.
const (
	statusOK   = 200
	statusGone = 410
)

// DefaultPolicy returns the policy for receivers without a configured policy.
func DefaultPolicy() Policy {
	return Policy{
		Attempts: 12, First: 5 * time.Second, Max: 12 * time.Hour, Jitter: true,
		BreakAfter: 20, BreakFor: 30 * time.Second,
	}
}

// QueuePolicy returns the policy of a system with numbered queues: a delivery that failed n times
// waits in queue n for delays[n]. Deliveries without an attempt are in queue 0, so the number of
// queues limits the attempts of a delivery.
func QueuePolicy(delays []time.Duration, attempts int) Policy {
	return Policy{Attempts: min(attempts, len(delays)), Delays: delays}
}

// BrokerPolicy returns the policy of a broker's consumers. The delay before the first retry is
// first, and each further delay is twice as long. The breaker is open for about the time of a
// message's first few retries.
func BrokerPolicy(first time.Duration, retries int) Policy {
	return Policy{
		Attempts: 1 + retries, First: first, Max: 12 * time.Hour, Jitter: true,
		BreakAfter: 20, BreakFor: 6 * first,
	}
}

// WatchPolicy returns the policy of a watch.
func WatchPolicy(period time.Duration, attempts int) Policy {
	return Policy{Attempts: attempts, Period: period, Only200: true}
}

// IsSuccess reports whether the answer a means that the delivery succeeded.
func (p *Policy) IsSuccess(a Answer) bool {
	if p.Only200 {
		return a.Status == statusOK
	}
	return a.Status >= 200 && a.Status <= 299
}

// Longest returns the longest time between a failure and the next attempt that p allows.
func (p *Policy) Longest() time.Duration {
	longest := p.Max
	for _, d := range p.Delays {
		longest = max(longest, d)
	}
	if p.Period > 0 {
		longest = max(longest, doubleTimes(p.Period, max(p.Attempts-1, 0)))
	}
	return longest + longest/5
}

// doubleTimes doubles d n times, up to a hundred years.
func doubleTimes(d time.Duration, n int) time.Duration {
	const limit = 100 * 365 * 24 * time.Hour
	for ; n > 0 && d < limit; n-- {
		d *= 2
	}
	return min(d, limit)
}

// A RetryDecision determines what happens after a failed attempt.
type RetryDecision struct {
	Dead  bool      // the last attempt failed, so the delivery becomes a dead letter
	Due   time.Time // time of the next attempt; zero: none exists
	Hold  time.Time // the receiver must not be called before this time; zero: no hold
	Pause bool      // the receiver requested no further calls
}

// DecideRetry decides what happens after a failed attempt. attempts is the number of attempts so
// far, and failedAt is the time of the failure. The same arguments give the same decision, because
// the jitter depends only on them.
func DecideRetry(p Policy, published, failedAt time.Time, attempts int, a Answer) RetryDecision {
	v := RetryDecision{Dead: attempts >= p.Attempts, Pause: a.Status == statusGone && p.Period == 0}
	if a.RetryAfter > 0 {
		v.Hold = failedAt.Add(a.RetryAfter)
	}
	if v.Dead {
		return v
	}
	var delay time.Duration
	switch {
	case p.Period > 0:
		v.Due = published.Add(doubleTimes(p.Period, attempts-1))
		if !v.Due.After(failedAt) {
			v.Due = failedAt.Add(doubleTimes(p.Period, max(attempts-2, 0)))
		}
		return v
	case len(p.Delays) > 0:
		delay = p.Delays[min(attempts, len(p.Delays)-1)]
	default:
		delay = min(doubleTimes(p.First, attempts-1), p.Max)
	}
	if p.Jitter {
		delay += jitter(delay/5, published, failedAt, attempts)
	}
	v.Due = failedAt.Add(delay)
	return v
}

// jitter returns a pseudorandom duration between -limit and limit, which depends only on the
// arguments.
func jitter(limit time.Duration, published, failedAt time.Time, attempts int) time.Duration {
	h := fnv.New64a()
	var b [24]byte
	binary.BigEndian.PutUint64(b[0:], uint64(published.UnixNano()))
	binary.BigEndian.PutUint64(b[8:], uint64(failedAt.UnixNano()))
	binary.BigEndian.PutUint64(b[16:], uint64(attempts)) //nolint:gosec // not negative
	h.Write(b[:])
	return time.Duration(mix(h.Sum64())%uint64(2*limit+1)) - limit //nolint:gosec // limit is not negative
}

// mix returns a 64-bit hash of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
