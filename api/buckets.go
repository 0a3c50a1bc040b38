package api

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets is how many clients have a bucket of their own, which takes some 300 bytes.
const maxBuckets = 10_000

// buckets has a bucket of tokens for each client. A full bucket is the same as
// a missing one, so the buckets of new clients replace full ones. While the
// buckets of maxBuckets clients are not full, all other clients share one: a
// client does not get a full bucket by using many names.
type buckets struct {
	unit   string // what a token stands for
	policy string // for the header RateLimit-Policy
	rate   float64
	burst  int // tokens of a full bucket

	mu      sync.Mutex
	clients map[string]*list.Element
	used    list.List // *bucket; the least recently used one is at the front
	others  *rate.Limiter
}

type bucket struct {
	*rate.Limiter
	client string
}

// newBuckets returns nil for a rate of 0, which means no limit. A client may
// take atOnce tokens at once, or the tokens of one second if they are more.
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

// take takes n tokens of a client, and returns what is left. If the bucket has fewer than n
// tokens, take leaves it unchanged and returns the time until it has n. An n above the capacity
// counts as a full bucket.
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

// pause returns the time until a client has a token, and leaves the bucket unchanged.
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
