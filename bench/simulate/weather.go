package simulate

// Weather is what a simulation has to put up with. Each seed has its own: some
// faults and not the others, often or rarely, because a world in which everything
// goes wrong all the time never gets to where only one thing does.
type weather struct {
	faults int // of a thousand turns
	passes int // of a thousand steps, after which time passes
	stale  int // of a thousand reads, if the account has stale ones
	slow   int // of a thousand answers, which come later
	kills  int // of a hundred thousand steps, each
	stops  int
	pauses int
	drops  int // of all connections to the bus
	storms int
	jumps  int // of clocks

	firsts int // of a thousand of what nobody, or hardly anybody, has asked before; 0: as of all others

	usual string // a fault that befalls half of those whom one does; "": none
	lasts int    // steps, after which it is fine for good

	kinds uint64 // which faults there are
}

func newWeather(d dice) weather {
	w := weather{passes: []int{2, 10, 40}[d.n(3)], kinds: d.next()}
	w.kinds |= d.next() // three quarters of them
	w.lasts = 200 + d.n(1000)
	if d.n(12) > 0 { // else a fine day
		w.faults = []int{20, 60, 150, 300}[d.n(4)]
		w.stale = []int{0, 100, 400}[d.n(3)]
		w.slow = []int{0, 100, 300}[d.n(3)]
		w.kills = []int{0, 200, 800}[d.n(3)]
		w.stops = []int{0, 0, 200}[d.n(3)]
		w.pauses = []int{0, 300, 600}[d.n(3)]
		w.drops = []int{0, 100, 400}[d.n(3)]
		w.storms = []int{0, 0, 100}[d.n(3)]
		w.jumps = []int{0, 0, 100}[d.n(3)]
	}
	return w
}

// has reports whether faults of this name happen.
func (w weather) has(name string) bool {
	var sum uint64
	for i := range len(name) {
		sum = sum*31 + uint64(name[i])
	}
	return w.kinds>>(sum%64)&1 == 1
}
