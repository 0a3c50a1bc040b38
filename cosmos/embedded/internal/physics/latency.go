package physics

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A Latency is how long an answer takes besides the work: Base, PerKB for each
// kilobyte of request and answer, and up to Jitter more, at random. So many of
// a thousand answers, at random too, take Slow besides.
type Latency struct {
	Base, PerKB, Jitter time.Duration

	Slow       time.Duration
	SlowOf1000 int

	// Seed makes the jitter the same in every run of requests that come one
	// after the other.
	Seed uint64

	// Sleep waits for d, or until ctx ends. Default: with a timer.
	Sleep func(ctx context.Context, d time.Duration)
}

// A Delayer delays answers. It is safe for use by many goroutines.
type Delayer struct {
	latency Latency

	mu     sync.Mutex
	random *rand.Rand
}

// NewDelayer returns a Delayer.
func NewDelayer(l Latency) *Delayer {
	if l.Sleep == nil {
		l.Sleep = func(ctx context.Context, d time.Duration) { _ = clock.Sleep(ctx, d) }
	}
	return &Delayer{latency: l, random: rand.New(rand.NewPCG(l.Seed, 0))}
}

// Delay waits as long as a request and an answer of so many bytes take.
func (d *Delayer) Delay(ctx context.Context, bytes int64) {
	wait := d.latency.Base + time.Duration(float64(d.latency.PerKB)*float64(bytes)/1024)
	d.latency.Sleep(ctx, wait+d.drawDelay())
}

// drawDelay is the part that is drawn.
func (d *Delayer) drawDelay() (wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.latency.Jitter > 0 {
		wait += time.Duration(d.random.Int64N(int64(d.latency.Jitter)))
	}
	if d.latency.SlowOf1000 > 0 && d.random.IntN(1000) < d.latency.SlowOf1000 {
		wait += d.latency.Slow
	}
	return wait
}
