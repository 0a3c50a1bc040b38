package scheduler

import "github.com/messagehub/messagehub/bench/simulate/random"

// A Profile says which faults a simulation injects, and how often. Each seed has a different profile: if every fault
// were frequent in every simulation, no simulation would reach the states that need a single fault.
type Profile struct {
	TurnFaults  int // faults per 1000 turns
	TimePasses  int // number of times per 1000 steps that time passes
	StaleReads  int // stale reads per 1000 reads, on an account that allows stale reads
	SlowAnswers int // delayed responses per 1000 responses
	Kills       int // kills per 100,000 steps; the frequencies below are also per 100,000 steps
	Stops       int
	Pauses      int
	BusDrops    int // drops of all connections to the bus
	Throttlings int
	ClockJumps  int // jumps of a process's clock

	RareRequests int // faults per 1000 rare requests; 0 means that rare requests are treated like all requests

	FrequentFault string // fault that is chosen half of the time; "" means that no fault is preferred
	LastStep      int    // number of the last step with faults

	kindMask uint64 // kinds of faults that this simulation injects
}

// NewProfile returns a random profile.
func NewProfile(rng random.Source) Profile {
	w := Profile{TimePasses: []int{2, 10, 40}[rng.IntN(3)], kindMask: rng.Uint64()}
	w.kindMask |= rng.Uint64() // on average, three quarters of the bits are set
	w.LastStep = 200 + rng.IntN(1000)
	if rng.IntN(12) > 0 { // one profile in twelve has no faults
		w.TurnFaults = []int{20, 60, 150, 300}[rng.IntN(4)]
		w.StaleReads = []int{0, 100, 400}[rng.IntN(3)]
		w.SlowAnswers = []int{0, 100, 300}[rng.IntN(3)]
		w.Kills = []int{0, 200, 800}[rng.IntN(3)]
		w.Stops = []int{0, 0, 200}[rng.IntN(3)]
		w.Pauses = []int{0, 300, 600}[rng.IntN(3)]
		w.BusDrops = []int{0, 100, 400}[rng.IntN(3)]
		w.Throttlings = []int{0, 0, 100}[rng.IntN(3)]
		w.ClockJumps = []int{0, 0, 100}[rng.IntN(3)]
	}
	return w
}

// hasKind reports whether this simulation injects faults with the given name.
func (w Profile) hasKind(name string) bool {
	var sum uint64
	for i := range len(name) {
		sum = sum*31 + uint64(name[i])
	}
	return w.kindMask>>(sum%64)&1 == 1
}
