package simulate

// faultProfile is what a simulation has to put up with. Each seed has its own: some
// faults and not the others, often or rarely, because a world in which everything
// goes wrong all the time never gets to where only one thing does.
type faultProfile struct {
	turnFaults  int // of a thousand turns
	timePasses  int // of a thousand steps, after which time passes
	staleReads  int // of a thousand reads, if the account has stale ones
	slowAnswers int // of a thousand answers, which come later
	kills       int // of a hundred thousand steps, each
	stops       int
	pauses      int
	busDrops    int // of all connections to the bus
	throttlings int
	clockJumps  int // of clocks

	rareRequests int // of a thousand of what nobody, or hardly anybody, has asked before; 0: as of all others

	frequentFault string // a fault that befalls half of those whom one does; "": none
	lastStep      int    // steps, after which it is fine for good

	kindMask uint64 // which faults there are
}

func newFaultProfile(rng rng) faultProfile {
	w := faultProfile{timePasses: []int{2, 10, 40}[rng.intN(3)], kindMask: rng.drawUint64()}
	w.kindMask |= rng.drawUint64() // three quarters of them
	w.lastStep = 200 + rng.intN(1000)
	if rng.intN(12) > 0 { // else a fine day
		w.turnFaults = []int{20, 60, 150, 300}[rng.intN(4)]
		w.staleReads = []int{0, 100, 400}[rng.intN(3)]
		w.slowAnswers = []int{0, 100, 300}[rng.intN(3)]
		w.kills = []int{0, 200, 800}[rng.intN(3)]
		w.stops = []int{0, 0, 200}[rng.intN(3)]
		w.pauses = []int{0, 300, 600}[rng.intN(3)]
		w.busDrops = []int{0, 100, 400}[rng.intN(3)]
		w.throttlings = []int{0, 0, 100}[rng.intN(3)]
		w.clockJumps = []int{0, 0, 100}[rng.intN(3)]
	}
	return w
}

// hasKind reports whether faults of this name happen.
func (w faultProfile) hasKind(name string) bool {
	var sum uint64
	for i := range len(name) {
		sum = sum*31 + uint64(name[i])
	}
	return w.kindMask>>(sum%64)&1 == 1
}
