package simulate

import (
	"sync/atomic"
	"time"
)

// faults are the faults that last for a while, and counts by which faults are chosen.
type faults struct {
	throttledUntil     time.Time    // until then Cosmos DB throttles requests
	throttledPartition string       // the only partition that it throttles; "": all
	lastPartition      string       // the partition of the last request
	refusedUntil       time.Time    // until then the accounts refuse all requests
	busAwayUntil       atomic.Int64 // until then no hub reaches the bus; Unix time in ns

	requestCounts  map[string]int // requests by kind
	throttledCount int            // throttled requests

	domainsFail      atomic.Bool // no domain produces content
	containerDropped atomic.Bool // a container was deleted, and the groups of the account may be lost
	storeCorrupted   atomic.Bool // the corruptor has begun: invariants of stored documents do not hold any more
}

// drawStaleness decides how many commits ago the state is that a read shows.
func (sim *simulation) drawStaleness(x *httpExchange) int {
	if sim.faultFree || !x.isCosmos || !x.isRead || sim.plan.consistency != "Session" || !sim.faultRNG.drawPermille(sim.profile.staleReads) {
		return 0
	}
	old := 1 + sim.faultRNG.intN(6)
	if !sim.injects() {
		return 0
	}
	return old
}

// drawDelay decides how long an answer takes.
func (sim *simulation) drawDelay() time.Duration {
	if sim.faultFree || !sim.faultRNG.drawPermille(sim.profile.slowAnswers) {
		return 0
	}
	d := time.Duration(1+sim.faultRNG.intN(3000)) * time.Millisecond
	if sim.faultRNG.intN(4) > 0 {
		d /= 100
	}
	if !sim.injects() {
		return 0
	}
	return d
}

// injectProcessFaults draws the faults that affect no single turn. It is called after every step: a hub is
// killed, stopped or paused, connections break, accounts throttle or refuse all requests, a clock jumps.
func (sim *simulation) injectProcessFaults() {
	if sim.faultFree {
		sim.stopMisconfigured()
		return
	}
	happens := func(rate int) bool {
		return rate > 0 && sim.faultRNG.intN(100_000) < rate && sim.injects()
	}
	i := sim.faultRNG.intN(hubCount)
	h := sim.hubAt(i)
	if h == nil {
		return
	}
	switch {
	case happens(sim.profile.kills):
		sim.traceLine(h.who + " is killed")
		h.kill()
		sim.markReached("a hub was killed")
	case happens(sim.profile.stops):
		sim.traceLine(h.who + " is told to stop")
		h.stopGracefully()
		sim.markReached("a hub was told to stop, and started again")
	case sim.profile.rareRequests > 0 && happens(100):
		sim.traceLine(h.who + " loses its listener")
		h.closeListener()
		sim.markReached("a hub lost its listener")
	case happens(sim.profile.pauses):
		d := time.Duration(1+sim.faultRNG.intN(90)) * time.Second
		sim.traceLine(h.who + " is paused for " + d.String())
		sim.pauseProcess(h.who, d)
		sim.markReached("a hub was paused")
	case happens(sim.profile.busDrops):
		sim.traceLine("the bus drops its connections")
		sim.env.bus.DropConnections()
		sim.markReached("the bus dropped its connections")
	case happens(sim.profile.throttlings):
		d := time.Duration(1+sim.faultRNG.intN(180)) * time.Second
		sim.faults.throttledUntil = time.Now().Add(d)
		if sim.plan.hasHotPartition && sim.faultRNG.intN(2) == 0 {
			sim.faults.throttledPartition = sim.faults.lastPartition
			sim.traceLine("partition " + sim.faults.throttledPartition + " is throttled for " + d.String())
			sim.markReached("one partition was throttled for a while")
			return
		}
		sim.faults.throttledPartition = ""
		sim.traceLine("the account throttles everybody for " + d.String())
		sim.markReached("the account throttled everybody for a while")
	case sim.plan.revokesKeys && happens(150):
		d := time.Duration(1+sim.faultRNG.intN(40)) * time.Second
		sim.traceLine("the accounts refuse everybody for " + d.String())
		sim.faults.refusedUntil = time.Now().Add(d)
		sim.markReached("an account refused everybody for a while")
	case h.isMisconfigured && happens(sim.repairRate()):
		sim.traceLine(h.who + " is to get its right settings")
		h.kill()
	case happens(sim.profile.clockJumps):
		d := time.Duration(sim.faultRNG.intN(7200)-3600) * time.Second
		sim.traceLine(h.who + " has its clock moved by " + d.String())
		h.skew.Store(int64(d))
		sim.markReached("a clock jumped")
	}
}

// repairRate is how often, in a hundred thousand steps, somebody sees that the settings of
// a hub are wrong.
func (sim *simulation) repairRate() int {
	if sim.plan.misconfiguresBus || sim.faults.storeCorrupted.Load() {
		return 500
	}
	return 2000
}

// pauseProcess gives a process no turn for a while.
func (sim *simulation) pauseProcess(who string, d time.Duration) {
	sim.scheduler.mu.Lock()
	defer sim.scheduler.mu.Unlock()
	sim.paused[who] = time.Now().Add(d)
}
