package simulate

import (
	"sync/atomic"
	"time"
)

// faults holds the current lasting faults, and the counts on which the choice of faults depends.
type faults struct {
	throttledUntil     time.Time    // time until which Cosmos DB throttles requests
	throttledPartition string       // only partition that Cosmos DB throttles; "" means all partitions
	lastPartition      string       // partition of the last request
	refusedUntil       time.Time    // time until which the accounts refuse all requests
	busAwayUntil       atomic.Int64 // Unix time in ns until which no hub reaches the bus

	requestCounts  map[string]int // number of requests by kind
	throttledCount int            // throttled requests

	domainsFail      atomic.Bool // true while no domain produces content
	containerDropped atomic.Bool // true after a container was deleted; the groups of the account may be lost
	storeCorrupted   atomic.Bool // true after the corruptor has begun; stored documents may violate the invariants
}

// drawStaleness returns how many of the latest commits are invisible to a read.
func (sim *simulation) drawStaleness(x *httpExchange) int {
	if sim.FaultFree || !x.isCosmos || !x.isRead || sim.plan.consistency != "Session" || !sim.FaultRNG.Permille(sim.Profile.StaleReads) {
		return 0
	}
	old := 1 + sim.FaultRNG.IntN(6)
	if !sim.BeginFault() {
		return 0
	}
	return old
}

// drawDelay returns the delay of a response.
func (sim *simulation) drawDelay() time.Duration {
	if sim.FaultFree || !sim.FaultRNG.Permille(sim.Profile.SlowAnswers) {
		return 0
	}
	d := time.Duration(1+sim.FaultRNG.IntN(3000)) * time.Millisecond
	if sim.FaultRNG.IntN(4) > 0 {
		d /= 100
	}
	if !sim.BeginFault() {
		return 0
	}
	return d
}

// injectProcessFaults draws and injects the faults that do not replace a turn. It is called after every step: a hub is
// killed, stopped or paused, connections break, accounts throttle or refuse all requests, or a clock jumps.
func (sim *simulation) injectProcessFaults() {
	if sim.FaultFree {
		sim.stopMisconfigured()
		return
	}
	happens := func(rate int) bool {
		return rate > 0 && sim.FaultRNG.IntN(100_000) < rate && sim.BeginFault()
	}
	i := sim.FaultRNG.IntN(hubCount)
	h := sim.hubAt(i)
	if h == nil {
		return
	}
	switch {
	case happens(sim.Profile.Kills):
		sim.LogFault(h.who + " is killed")
		h.kill()
		sim.MarkReached("a hub was killed")
	case happens(sim.Profile.Stops):
		sim.LogFault(h.who + " is asked to stop")
		h.stopGracefully()
		sim.MarkReached("a hub was stopped, and started again")
	case sim.Profile.RareRequests > 0 && happens(100):
		sim.LogFault(h.who + " loses its listener")
		h.closeListener()
		sim.MarkReached("a hub lost its listener")
	case happens(sim.Profile.Pauses):
		d := time.Duration(1+sim.FaultRNG.IntN(90)) * time.Second
		sim.LogFault(h.who + " is paused for " + d.String())
		sim.Pause(h.who, d)
		sim.MarkReached("a hub was paused")
	case happens(sim.Profile.BusDrops):
		sim.LogFault("the bus drops its connections")
		sim.env.bus.DropConnections()
		sim.MarkReached("the bus dropped its connections")
	case happens(sim.Profile.Throttlings):
		d := time.Duration(1+sim.FaultRNG.IntN(180)) * time.Second
		sim.faults.throttledUntil = time.Now().Add(d)
		if sim.plan.hasHotPartition && sim.FaultRNG.IntN(2) == 0 {
			sim.faults.throttledPartition = sim.faults.lastPartition
			sim.LogFault("partition " + sim.faults.throttledPartition + " is throttled for " + d.String())
			sim.MarkReached("one partition was throttled for a while")
			return
		}
		sim.faults.throttledPartition = ""
		sim.LogFault("the account throttles all clients for " + d.String())
		sim.MarkReached("the account throttled all requests for a while")
	case sim.plan.revokesKeys && happens(150):
		d := time.Duration(1+sim.FaultRNG.IntN(40)) * time.Second
		sim.LogFault("the accounts refuse all clients for " + d.String())
		sim.faults.refusedUntil = time.Now().Add(d)
		sim.MarkReached("the accounts refused all requests for a while")
	case h.isMisconfigured && happens(sim.repairRate()):
		sim.LogFault(h.who + " is to get its right settings")
		h.kill()
	case happens(sim.Profile.ClockJumps):
		d := time.Duration(sim.FaultRNG.IntN(7200)-3600) * time.Second
		sim.LogFault(h.who + " has its clock moved by " + d.String())
		h.skew.Store(int64(d))
		sim.MarkReached("a clock jumped")
	}
}

// repairRate returns the number of times in 100,000 steps that an operator repairs the wrong settings of a hub.
func (sim *simulation) repairRate() int {
	if sim.plan.misconfiguresBus || sim.faults.storeCorrupted.Load() {
		return 500
	}
	return 2000
}
