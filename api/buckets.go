package api

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets is the maximum number of clients that have a separate bucket. A bucket takes about 300
// bytes.
const maxBuckets = 10_000

// buckets is a set of token buckets, one for each client. A missing bucket counts as a full one, so
// a new client may replace a client whose bucket is full. If none of maxBuckets buckets is full,
// all new clients share one bucket, so a client cannot gain tokens by using many names.
type buckets struct {
	unit   string // what a token stands for: "requests", "events" or "tokens"
	policy string // value of the header RateLimit-Policy
	rate   float64
	burst  int // maximum number of tokens in a bucket

	mu      sync.Mutex
	clients map[string]*list.Element
	used    list.List // elements are *bucket, the least recently used first
	others  *rate.Limiter
}

type bucket struct {
	*rate.Limiter
	client string
}

// newBuckets returns buckets that gain perSecond tokens a second. A bucket contains at most atOnce
// tokens, but at least perSecond. If perSecond is 0, newBuckets returns nil, which means no limit.
func newBuckets(unit string, perSecond, atOnce int) *buckets {
	if perSecond <= 0 {
		return nil
	}
	b := &buckets{unit: unit, rate: float64(perSecond), burst: max(perSecond, atOnce), clients: make(map[string]*list.Element)}
	b.policy = fmt.Sprintf("%q;q=%d;w=%d", unit, b.burst, (b.burst+perSecond-1)/perSecond)
	b.others = b.newLimiter()
	return b
}

func (b *buckets) newLimiter() *rate.Limiter { return rate.NewLimiter(rate.Limit(b.rate), b.burst) }

// take takes n tokens from a client's bucket, and returns the number of remaining tokens. If the
// bucket contains fewer than n tokens, take leaves it unchanged and returns the time until it
// contains n. If n exceeds the maximum, take uses the maximum instead.
func (b *buckets) take(client string, n int, now time.Time) (left int, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.burst)
	l := b.limiterOf(client, now)
	if !l.AllowN(now, n) {
		tokens := l.TokensAt(now)
		return max(0, int(tokens)), max(time.Nanosecond, pauseUntil(float64(n), tokens, b.rate))
	}
	return max(0, int(l.TokensAt(now))), 0
}

// pause returns the time until a client's bucket contains a token. It takes no token.
func (b *buckets) pause(client string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, pauseUntil(1, b.limiterOf(client, now).TokensAt(now), b.rate))
}

func (b *buckets) limiterOf(client string, now time.Time) *rate.Limiter {
	if e := b.clients[client]; e != nil {
		b.used.MoveToBack(e)
		return e.Value.(*bucket).Limiter
	}
	if b.used.Len() >= maxBuckets {
		first := b.used.Front().Value.(*bucket)
		if first.TokensAt(now) < float64(b.burst) {
			return b.others
		}
		delete(b.clients, first.client)
		b.used.Remove(b.used.Front())
	}
	own := &bucket{b.newLimiter(), client}
	b.clients[client] = b.used.PushBack(own)
	return own.Limiter
}
