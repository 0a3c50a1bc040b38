package simulate

import (
	"math/rand/v2"
	"sync"
)

// rng are a source of chance that repeats itself. They are safe for concurrent use,
// but who shares them shares what comes next as well.
type rng struct {
	mu     *sync.Mutex
	source *rand.Rand
}

func newRNG(seed, use uint64) rng {
	return rng{new(sync.Mutex), rand.New(rand.NewPCG(seed, use))}
}

func (rng rng) drawUint64() uint64 {
	rng.mu.Lock()
	defer rng.mu.Unlock()
	return rng.source.Uint64()
}

// intN returns a number from 0 to below.
func (rng rng) intN(below int) int { return int(rng.drawUint64() % uint64(below)) } //nolint:gosec // below is positive and small

// drawPermille is true in so many of a thousand cases.
func (rng rng) drawPermille(permille int) bool { return rng.intN(1000) < permille }

func (rng rng) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(rng.drawUint64() >> 56)
	}
	return len(p), nil
}
