package scheduler

import "github.com/messagehub/messagehub/bench/simulate/random"

// A Profile says which faults a simulation injects, and how often. Each seed has its own, because a simulation in
// which every fault is frequent never reaches the states that need a single fault.
type Profile struct {
	TurnFaults  int // faults per 1000 turns
	TimePasses  int // steps of 1000 after which time passes
	StaleReads  int // stale reads per 1000, on an account that may have them
	SlowAnswers int // delayed answers per 1000
	Kills       int // per 100,000 steps, like those below
	Stops       int
	Pauses      int
	BusDrops    int // of all connections to the bus
	Throttlings int
	ClockJumps  int // jumps of a process's clock

	RareRequests int // faults per 1000 rare requests; 0: rare requests are treated like all others

	FrequentFault string // a fault that is chosen half of the time; "": none
	LastStep      int    // the last step with faults

	kindMask uint64 // kinds of faults that happen
}

// NewProfile draws a profile.
func NewProfile(rng random.Source) Profile {
	w := Profile{TimePasses: []int{2, 10, 40}[rng.IntN(3)], kindMask: rng.Uint64()}
	w.kindMask |= rng.Uint64() // three quarters of all kinds
	w.LastStep = 200 + rng.IntN(1000)
	if rng.IntN(12) > 0 { // else there are no faults
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

// hasKind reports whether faults with a name happen.
func (w Profile) hasKind(name string) bool {
	var sum uint64
	for i := range len(name) {
		sum = sum*31 + uint64(name[i])
	}
	return w.kindMask>>(sum%64)&1 == 1
}
