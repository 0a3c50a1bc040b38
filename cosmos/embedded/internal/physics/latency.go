package physics

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A Latency describes the delay of a response: Base, plus PerKB for each kilobyte of request and response, plus a
// random time of up to Jitter. A random SlowOf1000 of 1,000 responses also take Slow.
type Latency struct {
	Base, PerKB, Jitter time.Duration

	Slow       time.Duration
	SlowOf1000 int

	// Seed makes the delays of sequential requests reproducible.
	Seed uint64

	// Sleep waits for d, or until ctx ends. Default: a timer.
	Sleep func(ctx context.Context, d time.Duration)
}

// A Delayer delays responses by a Latency. It is safe for concurrent use.
type Delayer struct {
	latency Latency

	mu     sync.Mutex
	random *rand.Rand
}

// NewDelayer returns a Delayer for l.
func NewDelayer(l Latency) *Delayer {
	if l.Sleep == nil {
		l.Sleep = func(ctx context.Context, d time.Duration) { _ = clock.Sleep(ctx, d) }
	}
	return &Delayer{latency: l, random: rand.New(rand.NewPCG(l.Seed, 0))}
}

// Delay waits for the latency of a request. bytes is the total size of the request and its response.
func (d *Delayer) Delay(ctx context.Context, bytes int64) {
	wait := d.latency.Base + time.Duration(float64(d.latency.PerKB)*float64(bytes)/1024)
	d.latency.Sleep(ctx, wait+d.drawDelay())
}

// drawDelay returns the random part of a delay.
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
