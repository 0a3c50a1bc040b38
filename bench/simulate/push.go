package simulate

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cosmos/client"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A pushSimulation runs nodes that share the shards of one account, senders that publish messages, and receivers that
// the nodes call. One seed in three has a push simulation.
type pushSimulation struct {
	*simulation
	rng      random.Source
	purposes uint64 // number that is added to the purpose of each random source
	observer *push.Observer
	content  repository.Content
	stream   domain.StreamName // stream to which senders publish
	segments int64             // size limit of a segment in bytes
	attempts int               // maximum number of attempts of a delivery
	workload func() error      // function that runs all clients until every delivery has ended
	broker   *brokerSimulation // the broker simulation that embeds this one; may be nil

	subscriptions      *subscriptionSimulation // the subscription simulation that embeds this one; may be nil
	watches            *watchSimulation        // the watch simulation that embeds this one; may be nil
	failSafe           failSafe
	describeUnfinished func() string // returns a description of unfinished work other than deliveries, or ""; may be nil

	pmu       sync.Mutex
	nodes     [pushNodes]*pushNode
	starts    [pushNodes]int
	receivers map[string]*pushReceiver // by cursor
	addresses map[string]*pushReceiver
	accepted  int // number of accepted messages
}

const pushNodes = 2

// pushFaults is the offset of fault numbers in a push simulation. Faults of the mailbox simulation have lower numbers.
const pushFaults = 1_000_000

// hasPush reports whether a seed has a push simulation.
func hasPush(seed uint64) bool { return random.New(seed, 500).IntN(3) == 0 }

// newPushSimulation returns a simulation. The purposes of its random sources are greater than uses, and the numbers of
// its faults are greater than faults.
func newPushSimulation(o *Options, uses uint64, faults int) (*pushSimulation, error) {
	sim, err := newSimulation(o)
	if err != nil {
		return nil, err
	}
	p := &pushSimulation{
		simulation: sim, rng: random.New(o.Seed, 501+uses), purposes: uses, attempts: len(pushDelays), content: memory.NewContent(),
		receivers: make(map[string]*pushReceiver), addresses: make(map[string]*pushReceiver),
	}
	p.workload, p.failSafe = p.publishAll, newFailSafe(random.New(o.Seed, 503+uses))
	if p.failSafe.hasDisabled() {
		sim.Profile.Kills = []int{0, 100}[p.failSafe.rng.IntN(2)] // few kills or none, so that a surviving node runs for a long time
	}
	sim.env.stored, sim.plan.hasCorruptor, sim.plan.usesReceivers, sim.FaultNumber = nil, false, false, faults
	sim.Profile.LastStep = 150 + p.rng.IntN(600)
	p.segments = []int64{0, 0, 2000}[p.rng.IntN(3)]
	p.observer = sim.work.checkers[containers.InvariantsPush].(*push.Observer)
	p.observer.SetCallbacks(push.Callbacks{
		Matches: p.matches, Accepted: p.hasAccepted, Calls: p.countCalls,
		Budget: func(string) int { return p.attempts }, Reached: sim.MarkReached,
	})
	p.stream, err = domain.ParseTopic("prices")
	if err == nil {
		err = p.provisionContainers()
	}
	return p, errors.Join(err, sim.Failure())
}

// provisionContainers creates the containers. No faults are injected into its requests.
func (p *pushSimulation) provisionContainers() error {
	db, err := client.Connect(client.Connection{Endpoint: withHTTPS(p.env.engine.Endpoint()), Key: p.env.engine.Key(), Transport: p.env.engine.Transport()})
	if err != nil {
		return err
	}
	defer db.Close()
	store := pushstore.New(db, p.content, pushstore.Options{Random: p.rng.Uint64})
	_, err = store.Provision(p.ctx, client.ProvisionOptions{})
	return err
}

// runToEnd runs the simulation to its end, and returns the first violation.
func (p *pushSimulation) runToEnd() error {
	for i := range pushNodes {
		p.keepNodeRunning(i)
	}
	p.background.Go(p.runClients)
	isDone := func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.work.isDone }
	err := p.Run(isDone, func() error { p.injectNodeFaults(); return nil })
	p.isEnding.Store(true)
	p.cancel()
	for i := range pushNodes {
		if n := p.nodeAt(i); n != nil {
			n.kill()
		}
	}
	for _, l := range p.env.httpTransports {
		l.cutOff()
	}
	for _, r := range p.receivers {
		r.shutDown()
	}
	p.background.Wait()
	return err
}

// runClients runs the workload.
func (p *pushSimulation) runClients() {
	err := p.workload()
	if err != nil && p.ctx.Err() == nil {
		p.Fail(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work.isDone = true
	p.WakeUp()
}

func (p *pushSimulation) publishAll() error {
	owner := p.newClient("owner", 510)
	for i := range 2 + p.rng.IntN(3) {
		if err := p.createReceiver(&owner, i); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	failures := make([]error, 1+p.rng.IntN(3))
	for i := range failures {
		sender := &pushSender{baseClient: p.newClient(fmt.Sprint("sender-", i), uint64(520+i)), sim: p}
		p.background.Add(1)
		all.Go(func() { defer p.background.Done(); failures[i] = sender.sendMany() })
	}
	var refused error
	if hasReplays(p.options.Seed) {
		operator := &pushOperator{baseClient: p.newClient("operator", 530), sim: p}
		p.background.Add(1)
		all.Go(func() { defer p.background.Done(); refused = operator.replayMany() })
	}
	all.Wait()
	if err := errors.Join(errors.Join(failures...), refused); err != nil {
		return err
	}
	if err := p.awaitDeliveries(&owner, func() error { return nil }); err != nil || p.ctx.Err() != nil {
		return err
	}
	if total := p.countPublished(p.stream); int64(p.accepted) > total {
		return fmt.Errorf("P1: %d messages were accepted, but %d published", p.accepted, total)
	}
	return p.verifyReceivers()
}

// runTogether runs functions concurrently, and joins their errors.
func (p *pushSimulation) runTogether(acts ...func() error) error {
	var all sync.WaitGroup
	failures := make([]error, len(acts))
	for i, act := range acts {
		p.background.Add(1)
		all.Go(func() { defer p.background.Done(); failures[i] = act() })
	}
	all.Wait()
	return errors.Join(failures...)
}

// countPublished returns the number of entries of a stream.
func (p *pushSimulation) countPublished(stream domain.StreamName) (total int64) {
	for _, n := range p.observer.Published(stream.String()) {
		total += n
	}
	return total
}

// awaitDeliveries calls the function each every few seconds until all deliveries have ended. Its time limit is above
// two hours, because a clock may have been set back by up to two hours, which delays retries by the same time.
func (p *pushSimulation) awaitDeliveries(owner *baseClient, each func() error) error {
	const limit, every = 2*time.Hour + 20*time.Minute, 3 * time.Second
	began := time.Time{}
	for {
		if !owner.pause(every) {
			return nil
		}
		if _, ok := owner.awaitTurn("looks at what is left"); !ok {
			return nil
		}
		if err := errors.Join(p.recoverCursors(owner.rng), each()); err != nil {
			return err
		}
		left, isFaultFree := p.describeOutstanding(), p.IsFaultFree()
		switch {
		case left == "" && isFaultFree:
			return nil
		case isFaultFree && began.IsZero():
			began = time.Now()
		case isFaultFree && time.Since(began) > limit:
			return fmt.Errorf("P1: %v after the last fault, %s", limit, left)
		}
	}
}

// describeOutstanding describes an outstanding delivery or other unfinished work. It returns "" if all is finished.
func (p *pushSimulation) describeOutstanding() string {
	if p.describeUnfinished != nil {
		if left := p.describeUnfinished(); left != "" {
			return left
		}
	}
	for _, id := range p.observer.Cursors() {
		outstanding, at := p.observer.Outstanding(id)
		if len(outstanding) > 0 {
			return fmt.Sprintf("cursor %s has %v", id, outstanding)
		}
		if followed, requested, isRunning := p.observer.Replaying(id); followed < requested || isRunning {
			return fmt.Sprintf("cursor %s has followed %d of %d requests to replay, or replays", id, followed, requested)
		}
		if p.observer.IsRetired(id) {
			continue
		}
		for priority, n := range p.observer.Published(p.streamOf(id)) {
			if at[priority] < n {
				return fmt.Sprintf("cursor %s has taken %d of %d entries of priority %d", id, at[priority], n, priority)
			}
		}
	}
	return ""
}

// streamOf returns the name of the stream of a cursor.
func (p *pushSimulation) streamOf(cursor string) string {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	return p.receivers[cursor].stream.String()
}

// entryOf returns the entry with an id in a stream.
func entryOf(stream domain.StreamName, e domain.EntryID) push.Entry {
	return push.Entry{Stream: stream.String(), Priority: e.Priority, Number: e.Number}
}

// verifyReceivers compares the entries that receivers accepted with the published entries.
func (p *pushSimulation) verifyReceivers() error {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	for id, r := range p.receivers {
		begin := p.observer.Begin(id)
		for priority, n := range p.observer.Published(r.stream.String()) {
			for number := begin[priority]; number < n; number++ {
				e := push.Entry{Stream: r.stream.String(), Priority: priority, Number: number}
				if !r.isDeleted && r.matches(e) && !r.accepted[e] && !r.fetched[e] && !p.observer.Dead(id, e) {
					return fmt.Errorf("P1: the receiver of %s has not accepted %s, which is not a dead letter", id, e)
				}
			}
		}
		attempts, losses := p.observer.Attempts(id)
		limit := int64(r.concurrency * losses)
		if r.isDeleted {
			limit += int64(r.concurrency) // nodes drop the results of calls that end after their deliveries were cancelled
		}
		if n := r.begun - attempts; n > limit {
			return fmt.Errorf("P5: %d calls for %s were not recorded, want at most %d; its owners lost it %d times", n, id, limit, losses)
		}
		_, requests, _ := p.observer.Replaying(id)
		if limit := 2 * (domain.MaxClaims + 1) * (1 + requests); r.killedNodes > limit {
			return fmt.Errorf("P9: a delivery of %s killed %d nodes, want at most %d", id, r.killedNodes, limit)
		}
		if limit := r.concurrency * pushNodes; r.maxActiveCalls > limit {
			return fmt.Errorf("P11: the receiver of %s had %d concurrent calls, want at most %d", id, r.maxActiveCalls, limit)
		}
	}
	return nil
}

// injectNodeFaults draws and injects the faults that do not replace a turn.
func (p *pushSimulation) injectNodeFaults() {
	n := p.nodeAt(p.FaultRNG.IntN(pushNodes))
	if p.IsFaultFree() || n == nil {
		return
	}
	happens := func(rate int) bool {
		return rate > 0 && p.FaultRNG.IntN(100_000) < rate && p.BeginFault()
	}
	switch {
	case p.beginOutage() && p.BeginFault():
		p.LogFault(n.who + " is killed, and stays down")
		n.staysDown = true // set first, because the node reads it when it ends
		n.kill()
		p.MarkReached("a hub was killed")
	case happens(2 * p.Profile.Kills):
		p.LogFault(n.who + " is killed")
		n.kill()
		p.MarkReached("a hub was killed")
	case happens(2 * p.Profile.Stops):
		p.LogFault(n.who + " is asked to stop")
		n.cancel()
		p.MarkReached("a hub was stopped, and started again")
	case happens(2 * p.Profile.Pauses):
		d := time.Duration(1+p.FaultRNG.IntN(90)) * time.Second
		p.LogFault(n.who + " is paused for " + d.String())
		p.Pause(n.who, d)
		p.MarkReached("a hub was paused")
		if n.underway.Load() > 0 {
			p.MarkReached("a node was paused while it called")
		}
	case happens(p.Profile.Throttlings):
		d := time.Duration(1+p.FaultRNG.IntN(60)) * time.Second
		p.faults.throttledUntil, p.faults.throttledPartition = time.Now().Add(d), ""
		p.LogFault("the account throttles all clients for " + d.String())
		p.MarkReached("the account throttled all requests for a while")
	case happens(p.Profile.ClockJumps):
		d := time.Duration(p.FaultRNG.IntN(7200)-3600) * time.Second
		p.LogFault(n.who + " has its clock moved by " + d.String())
		n.skew.Store(int64(d))
		p.MarkReached("a clock jumped")
	}
}

// runPush runs the push simulation of a seed in a synctest bubble.
func runPush(o *Options) (r Result) {
	p, err := newPushSimulation(o, 0, pushFaults)
	if err != nil {
		return Result{Err: err}
	}
	return p.newResult(wrapPush(p.runToEnd()))
}

func wrapPush(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("push: %w", err)
}
