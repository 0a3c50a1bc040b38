package scheduler

import "github.com/messagehub/messagehub/bench/simulate/random"

// Profile is what a simulation has to put up with. Each seed has its own: some
// faults and not the others, often or rarely, because a world in which everything
// goes wrong all the time never gets to where only one thing does.
type Profile struct {
	TurnFaults  int // of a thousand turns
	TimePasses  int // of a thousand steps, after which time passes
	StaleReads  int // of a thousand reads, if the account has stale ones
	SlowAnswers int // of a thousand answers, which come later
	Kills       int // of a hundred thousand steps, each
	Stops       int
	Pauses      int
	BusDrops    int // of all connections to the bus
	Throttlings int
	ClockJumps  int // of clocks

	RareRequests int // of a thousand of what nobody, or hardly anybody, has asked before; 0: as of all others

	FrequentFault string // a fault that befalls half of those whom one does; "": none
	LastStep      int    // steps, after which it is fine for good

	kindMask uint64 // which faults there are
}

func NewProfile(rng random.Source) Profile {
	w := Profile{TimePasses: []int{2, 10, 40}[rng.IntN(3)], kindMask: rng.Uint64()}
	w.kindMask |= rng.Uint64() // three quarters of them
	w.LastStep = 200 + rng.IntN(1000)
	if rng.IntN(12) > 0 { // else a fine day
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

// hasKind reports whether faults of this name happen.
func (w Profile) hasKind(name string) bool {
	var sum uint64
	for i := range len(name) {
		sum = sum*31 + uint64(name[i])
	}
	return w.kindMask>>(sum%64)&1 == 1
}
