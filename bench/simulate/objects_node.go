package simulate

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

// An objectNode is one process of a node that stores objects, with a separate transport.
type objectNode struct {
	sim       *objectSimulation
	index     int
	who       string
	transport *httpTransport
	store     *objectstore.Store
	ledger    *ledger.Service
	skew      atomic.Int64 // difference between the node's clock and the correct time, in ns
	killed    atomic.Bool
	died      chan struct{} // closed by kill
}

func (sim *objectSimulation) nodeAt(i int) *objectNode {
	sim.omu.Lock()
	defer sim.omu.Unlock()
	return sim.nodes[i]
}

// keepNodeRunning starts the i-th node, and restarts the node some time after it was killed.
func (sim *objectSimulation) keepNodeRunning(i int) {
	sim.background.Go(func() {
		for sim.ctx.Err() == nil && !sim.isEnding.Load() {
			if sim.isResting.Load() {
				_ = clock.Sleep(sim.ctx, time.Second) // the loop checks the context
				continue
			}
			n, err := sim.startNode(i)
			if err != nil {
				sim.Fail(err)
				return
			}
			n.workUntilDeath()
			_ = clock.Sleep(sim.ctx, time.Second) // the loop checks the context
		}
	})
}

func (sim *objectSimulation) startNode(i int) (*objectNode, error) {
	sim.omu.Lock()
	defer sim.omu.Unlock()
	sim.starts[i]++
	n := &objectNode{sim: sim, index: i, who: fmt.Sprintf("node-%d.%d", i, sim.starts[i]), died: make(chan struct{})}
	n.transport = sim.newHTTPTransport(n.who)
	db, err := client.Connect(client.Connection{Endpoint: endpointOfClient(n.who, sim.env.engine.Endpoint()), Key: sim.env.engine.Key(), Transport: n.transport})
	if err != nil {
		return nil, fmt.Errorf("%s connects: %w", n.who, err)
	}
	options := sim.storeOptions
	options.Random = random.New(sim.options.Seed, uint64(objectPurposes+600+100*i+sim.starts[i])).Uint64 //nolint:gosec // positive
	options.Clock = func() time.Time { return sim.clock.nextTime().Add(time.Duration(n.skew.Load())) }
	n.store = objectstore.New(db, options)
	n.ledger = sim.newLedgerService(n.store, &objectSource{sim.source, n, sim.newClient(n.who, objectPurposes+900)}, options)
	sim.nodes[i] = n
	return n, nil
}

// workUntilDeath works on jobs until the node is killed. Requests of a killed node are not executed.
func (n *objectNode) workUntilDeath() {
	ctx, cancel := context.WithCancel(n.sim.ctx)
	defer cancel()
	n.sim.background.Go(func() { n.ledger.RunJobs(ctx) })
	select {
	case <-n.died:
	case <-n.sim.ctx.Done():
	}
}

// call runs do on the node. It returns false if the node is killed or the call times out before do returns.
func (n *objectNode) call(do func(ctx context.Context)) bool {
	ctx, cancel := context.WithTimeout(n.sim.ctx, clientTimeout)
	defer cancel()
	done := make(chan struct{})
	n.sim.calls.Add(1)
	n.sim.background.Go(func() {
		defer n.sim.calls.Add(-1)
		defer close(done)
		do(ctx)
	})
	select {
	case <-done:
		return true
	case <-n.died:
	case <-ctx.Done():
	}
	return false
}

// kill ends the node. Later requests of the node are not executed.
func (n *objectNode) kill() {
	if n.killed.Swap(true) {
		return
	}
	n.transport.cutOff()
	close(n.died)
	n.sim.omu.Lock()
	defer n.sim.omu.Unlock()
	if n.sim.nodes[n.index] == n {
		n.sim.nodes[n.index] = nil
	}
}

// injectNodeFaults draws and injects the faults that do not replace a turn.
func (sim *objectSimulation) injectNodeFaults() {
	n := sim.nodeAt(sim.FaultRNG.IntN(objectNodes))
	if sim.FaultFree || n == nil {
		return
	}
	happens := func(rate int) bool {
		return rate > 0 && sim.FaultRNG.IntN(100_000) < rate && sim.BeginFault()
	}
	switch {
	case happens(4 * sim.Profile.Kills):
		sim.LogFault(n.who + " is killed")
		n.kill()
		sim.MarkReached("a hub was killed")
	case happens(4 * sim.Profile.Pauses):
		d := time.Duration(1+sim.FaultRNG.IntN(90)) * time.Second
		sim.LogFault(n.who + " is paused for " + d.String())
		sim.Pause(n.who, d)
		sim.MarkReached("a hub was paused")
	case happens(2 * sim.Profile.Throttlings):
		d := time.Duration(1+sim.FaultRNG.IntN(60)) * time.Second
		sim.faults.throttledUntil, sim.faults.throttledPartition = time.Now().Add(d), ""
		sim.LogFault("the account throttles all clients for " + d.String())
		sim.MarkReached("the account throttled all requests for a while")
	case happens(sim.Profile.ClockJumps):
		limit := maxObjectSkew
		if sim.FaultRNG.IntN(2) == 0 {
			limit = domain.ClockMargin
		}
		d := time.Duration(sim.FaultRNG.IntN(2*int(limit/time.Second)))*time.Second - limit
		sim.LogFault(n.who + " has its clock moved by " + d.String())
		n.skew.Store(int64(d))
		sim.hasSkew, sim.hasJumped = true, sim.hasJumped || d.Abs() > domain.ClockMargin
		sim.MarkReached("a clock jumped")
	}
}
