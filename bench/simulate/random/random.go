// Package random draws the random numbers of a simulation. Each [Source] has its own purpose, and is derived from the
// seed and that purpose, so additional draws for one purpose do not change the draws for other purposes.
package random

import (
	"math/rand/v2"
	"sync"
)

// A Source is a repeatable source of randomness. It is safe for concurrent use, but the numbers that a caller draws
// depend on the number of earlier draws.
type Source struct {
	mu   *sync.Mutex
	Rand *rand.Rand
}

// New returns the source of a seed for one purpose. Sources of different purposes are independent.
func New(seed, purpose uint64) Source {
	return Source{new(sync.Mutex), rand.New(rand.NewPCG(seed, purpose))}
}

// Uint64 returns a random number.
func (rng Source) Uint64() uint64 {
	rng.mu.Lock()
	defer rng.mu.Unlock()
	return rng.Rand.Uint64()
}

// IntN returns a number from 0 to below-1.
func (rng Source) IntN(below int) int { return int(rng.Uint64() % uint64(below)) } //nolint:gosec // below is positive and small

// Permille returns true with a probability of permille in 1000.
func (rng Source) Permille(permille int) bool { return rng.IntN(1000) < permille }

// Read fills p with random bytes. It never fails.
func (rng Source) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(rng.Uint64() >> 56)
	}
	return len(p), nil
}
