package simulate

import (
	"context"
	"sync"
	"sync/atomic"

	busembedded "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	blobembedded "github.com/messagehub/messagehub/repository/content/embedded"
)

// A simulation runs two hubs on one Cosmos account, one Service Bus namespace and one Blob account, together with the
// domains, actors and operators that use the hubs.
type simulation struct {
	*scheduler.Scheduler
	options *Options
	plan    simulationPlan

	env    environment
	faults faults
	work   workload

	mu         sync.Mutex         // guards env.hubs, env.starts, env.busTransports and work.isDone
	ctx        context.Context    //nolint:containedctx // the clients' context
	cancel     context.CancelFunc // ends ctx
	background sync.WaitGroup     // goroutines that end when all transports are cut
	isEnding   atomic.Bool        // true when no further hub may start
}

func newSimulation(o *Options) (*simulation, error) {
	rng, latest := random.New(o.Seed, 3), random.New(o.Seed, 7)
	sim := &simulation{options: o, plan: newPlan(rng, random.New(o.Seed, 4), random.New(o.Seed, 5), latest), Scheduler: scheduler.New(o.Seed, o.Drop, o.Trace, scheduler.NewProfile(rng))}
	sim.work = workload{ledger: newReferenceLedger(), poison: newPoisonMessages(), outbox: make(noticeOutbox)}
	sim.faults.requestCounts = make(map[string]int)
	if isSmall(o.Seed) {
		if sim.plan.shrink(); random.New(o.Seed, 9).IntN(12) == 0 {
			sim.plan.endWaitsAtSweeps()
		}
		net := random.New(o.Seed, 99)
		sim.plan.hasSocketErrors, sim.plan.hasHotPartition = net.IntN(2) == 0, net.IntN(4) == 0
	}
	sim.plan.usesReceivers = random.New(o.Seed, 402).IntN(12) == 0
	sim.plan.deletesContent = sim.plan.hasRequestedContent() && !sim.plan.hasCorruptor && random.New(o.Seed, 404).IntN(2) == 0
	if sim.plan.hasHotPartition {
		sim.Profile.Throttlings = max(sim.Profile.Throttlings, 200)
	}
	if sim.plan.hasCorruptor {
		sim.env.stored = newStoredDocuments()
	}
	if rights := random.New(o.Seed, 6); rights.IntN(4) == 0 { // hubs do not retry after a 403, although they retry after other faults
		sim.Profile.FrequentFault, sim.Profile.TurnFaults = faulty.Forbidden.String(), max(sim.Profile.TurnFaults, 60)
	}
	if latest.IntN(3) == 0 {
		sim.Profile.RareRequests = []int{60, 150, 300}[latest.IntN(3)]
	}
	if tokens := random.New(o.Seed, 405); tokens.IntN(5) == 0 {
		sim.env.issuer = newTokenIssuer(sim, tokens)
		sim.Profile.ClockJumps = 0 // if clocks jumped, a token could expire at any time
	}
	sim.work.checkers, sim.work.coverObserver = newCheckers(sim), newCoverageObserver(sim)
	sim.work.mailboxes = newMailboxHistories(sim)
	if sim.plan.stopsAtSweeps { // the preferred fault makes it likely that a sweep runs while the outcome of a Save is unknown
		sim.Profile.FrequentFault, sim.Profile.TurnFaults = faulty.ReplyLostAfter.String(), max(sim.Profile.TurnFaults, 150)
	}
	if sim.plan.phases > 1 { // a hub whose clock jumps would remove events too early
		sim.Profile.ClockJumps = 0
	}
	sim.ctx, sim.cancel = context.WithCancel(context.Background())
	var err error
	if sim.env.bus, err = busembedded.Open(busembedded.Options{Entities: sim.plan.busEntities(), Keys: busKeys}); err != nil {
		return nil, err
	}
	if sim.env.blobs, err = blobembedded.Open(blobembedded.Options{Containers: []string{exchangeContainer, contentContainer}}); err != nil {
		return nil, err
	}
	options := embedded.Options{Consistency: sim.plan.consistency, RangeBytes: sim.plan.rangeBytes, Committed: sim.checkCommit}
	if sim.plan.consistency == "Session" {
		options.Stale = func() int { return int(sim.env.staleCommits.Load()) }
	}
	sim.env.engine, err = embedded.Open(options)
	return sim, err
}

// runToEnd runs the simulation to its end, and returns the first violation.
func (sim *simulation) runToEnd() error {
	for i := range sim.env.hubs {
		sim.startHub(i)
	}
	sim.background.Go(sim.runClients)
	err := sim.Run(func() bool { sim.mu.Lock(); defer sim.mu.Unlock(); return sim.work.isDone }, func() error { sim.injectProcessFaults(); return nil })
	sim.isEnding.Store(true)
	sim.cancel()
	for i := range sim.env.hubs {
		if h := sim.hubAt(i); h != nil {
			h.kill()
		}
	}
	for _, l := range sim.env.httpTransports {
		l.cutOff()
	}
	for _, l := range sim.env.busTransports {
		l.dead.Store(true)
		l.cutConnections()
	}
	sim.background.Wait()
	return err
}

// runClients runs the workload and then the corruptor, if the plan has one.
func (sim *simulation) runClients() {
	err := sim.runWorkload()
	if err == nil && sim.plan.hasCorruptor && sim.ctx.Err() == nil {
		err = sim.runCorruption()
	}
	if err != nil {
		sim.Fail(err)
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.work.isDone = true
	sim.WakeUp()
}
