package simulate

import (
	"math/rand/v2"
	"sync"
)

// Dice are a source of chance that repeats itself. They are safe for concurrent use,
// but who shares them shares what comes next as well.
type dice struct {
	mu     *sync.Mutex
	source *rand.Rand
}

func newDice(seed, use uint64) dice {
	return dice{new(sync.Mutex), rand.New(rand.NewPCG(seed, use))}
}

func (d dice) next() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.source.Uint64()
}

// n returns a number from 0 to below.
func (d dice) n(below int) int { return int(d.next() % uint64(below)) } //nolint:gosec // below is positive and small

// chance is true in so many of a thousand cases.
func (d dice) chance(permille int) bool { return d.n(1000) < permille }

func (d dice) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(d.next() >> 56)
	}
	return len(p), nil
}
