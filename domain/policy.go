package domain

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// A Policy says when a delivery that failed is attempted again, and when it becomes a dead letter.
type Policy struct {
	Attempts int // limit for the calls of a delivery

	// Delays[n] is the time between the n-th failure and the next attempt. Without it, the
	// time is First after the first failure and doubles with each, up to Max.
	Delays     []time.Duration
	First, Max time.Duration
	Jitter     bool // the time varies randomly by up to a fifth

	// Period is for watches: after the n-th failure, the next attempt is 2^(n-1) periods after
	// the event. It replaces Delays and First. No answer pauses a watch.
	Period time.Duration

	Only200    bool          // only status 200 is a success; otherwise any 2xx
	BreakAfter int           // failures in a row that open the breaker; 0: never
	BreakFor   time.Duration // how long the breaker is open before a probe
}

// The statuses of HTTP that have a special meaning.
const (
	statusOK   = 200
	statusGone = 410
)

// DefaultPolicy returns the policy of a receiver without one.
func DefaultPolicy() Policy {
	return Policy{
		Attempts: 12, First: 5 * time.Second, Max: 12 * time.Hour, Jitter: true,
		BreakAfter: 20, BreakFor: 30 * time.Second,
	}
}

// QueuePolicy returns the policy of numbered queues: a delivery that failed n times waits
// in queue n, for delays[n]. Queue 0 holds those that were not attempted yet, so a delivery
// is attempted at most as often as there are queues.
func QueuePolicy(delays []time.Duration, attempts int) Policy {
	return Policy{Attempts: min(attempts, len(delays)), Delays: delays}
}

// BrokerPolicy returns the policy of a broker's consumers. The first retry follows a failure
// after the time first, and each further retry after twice the previous time. The breaker stays
// open for about as long as a few retries of one message take.
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

// IsSuccess reports whether an answer ends a delivery.
func (p *Policy) IsSuccess(a Answer) bool {
	if p.Only200 {
		return a.Status == statusOK
	}
	return a.Status >= 200 && a.Status <= 299
}

// Longest returns the longest time between a failure and the next attempt.
func (p *Policy) Longest() time.Duration {
	longest := p.Max
	for _, d := range p.Delays {
		longest = max(longest, d)
	}
	if p.Period > 0 {
		longest = max(longest, doubled(p.Period, max(p.Attempts-1, 0)))
	}
	return longest + longest/5
}

// doubled returns d doubled n times, limited to a hundred years.
func doubled(d time.Duration, n int) time.Duration {
	const limit = 100 * 365 * 24 * time.Hour
	for ; n > 0 && d < limit; n-- {
		d *= 2
	}
	return min(d, limit)
}

// A Verdict says what happens after a failed attempt.
type Verdict struct {
	Dead  bool      // the budget is spent: a dead letter
	Due   time.Time // of the next attempt, unless it is dead
	Hold  time.Time // the receiver is not called before this time; zero: no limit
	Pause bool      // the receiver wants no more calls
}

// Next returns the verdict after attempt number attempts, which failed at failedAt. The same
// arguments give the same verdict, because the jitter depends only on them.
func Next(p Policy, published, failedAt time.Time, attempts int, a Answer) Verdict {
	v := Verdict{Dead: attempts >= p.Attempts, Pause: a.Status == statusGone && p.Period == 0}
	if a.RetryAfter > 0 {
		v.Hold = failedAt.Add(a.RetryAfter)
	}
	if v.Dead {
		return v
	}
	var delay time.Duration
	switch {
	case p.Period > 0:
		v.Due = published.Add(doubled(p.Period, attempts-1))
		if !v.Due.After(failedAt) {
			v.Due = failedAt.Add(doubled(p.Period, max(attempts-2, 0)))
		}
		return v
	case len(p.Delays) > 0:
		delay = p.Delays[min(attempts, len(p.Delays)-1)]
	default:
		delay = min(doubled(p.First, attempts-1), p.Max)
	}
	if p.Jitter {
		delay += jitter(delay/5, published, failedAt, attempts)
	}
	v.Due = failedAt.Add(delay)
	return v
}

// jitter returns a duration between -limit and limit.
func jitter(limit time.Duration, published, failedAt time.Time, attempts int) time.Duration {
	h := fnv.New64a()
	var b [24]byte
	binary.BigEndian.PutUint64(b[0:], uint64(published.UnixNano()))
	binary.BigEndian.PutUint64(b[8:], uint64(failedAt.UnixNano()))
	binary.BigEndian.PutUint64(b[16:], uint64(attempts)) //nolint:gosec // not negative
	h.Write(b[:])
	return time.Duration(mix(h.Sum64())%uint64(2*limit+1)) - limit //nolint:gosec // limit is not negative
}

// mix spreads the bits of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
