package random

import (
	"math/rand/v2"
	"sync"
)

// Source are a source of chance that repeats itself. They are safe for concurrent use,
// but who shares them shares what comes next as well.
type Source struct {
	mu   *sync.Mutex
	Rand *rand.Rand
}

func NewSource(seed, use uint64) Source {
	return Source{new(sync.Mutex), rand.New(rand.NewPCG(seed, use))}
}

func (rng Source) Uint64() uint64 {
	rng.mu.Lock()
	defer rng.mu.Unlock()
	return rng.Rand.Uint64()
}

// IntN returns a number from 0 to below.
func (rng Source) IntN(below int) int { return int(rng.Uint64() % uint64(below)) } //nolint:gosec // below is positive and small

// Permille is true in so many of a thousand cases.
func (rng Source) Permille(permille int) bool { return rng.IntN(1000) < permille }

func (rng Source) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(rng.Uint64() >> 56)
	}
	return len(p), nil
}
