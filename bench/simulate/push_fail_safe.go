package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A failSafe says on which nodes of a push simulation the fail-safe is disabled. It also chooses the event, after the
// last fault, that makes a node serve the cursors of dead nodes. A node without fail-safe does not take over the shards
// of dead nodes. If the fail-safe of a node is disabled, a killed node may stay down for minutes.
type failSafe struct {
	isDisabled [pushNodes]bool
	recovery   recovery
	rng        random.Source
	outage     time.Duration // time for which both nodes run before one node is killed and stays down; 0 after the kill

	running   []string  // names of the nodes that have run since the last fault
	since     time.Time // time since which exactly these nodes have run
	recovered time.Time // start of the recovery; zero before the recovery
	shards    []int     // shards that must have a running owner after the recovery
	restarted bool      // true after a node was restarted because shards had no running owner
}

// A recovery is the event, after the last fault, that makes a node serve the cursors of a dead node.
type recovery int

// The recoveries. With byAsking and byWorker, a node that is down after the last fault stays down as long as the second
// node runs.
const (
	byStart  recovery = iota // a node starts
	byAsking                 // a node receives a request about each cursor
	byWorker                 // the worker of each node re-triggers overdue jobs
)

// newFailSafe chooses the fail-safe of a simulation at random. In half of the simulations, the fail-safe is enabled on
// all nodes.
func newFailSafe(rng random.Source) failSafe {
	f := failSafe{rng: rng, recovery: []recovery{byStart, byAsking}[rng.IntN(2)]}
	switch rng.IntN(4) {
	case 0:
		f.isDisabled = [pushNodes]bool{true, true}
	case 1:
		f.isDisabled[rng.IntN(pushNodes)] = true
	}
	if f.hasDisabled() {
		f.outage = deadAfter + time.Duration(2+rng.IntN(20))*time.Second
	}
	return f
}

func (f *failSafe) hasDisabled() bool { return slices.Contains(f.isDisabled[:], true) }

// beginOutage reports whether a node must be killed now and stay down until the last fault. It returns true at most
// once, and only after both nodes have run for some time: a node without fail-safe that has just started may still
// take the shards of the dead node.
func (p *pushSimulation) beginOutage() bool {
	f := &p.failSafe
	nodes, _ := p.runningNodes()
	if f.outage == 0 || len(nodes) < pushNodes || len(p.observer.Cursors()) == 0 {
		return false
	}
	for _, n := range nodes {
		if time.Since(n.began) < f.outage {
			return false
		}
	}
	f.outage = 0
	return true
}

// downtimeAfterEnd returns the time for which a node stays down after it has ended.
func (n *pushNode) downtimeAfterEnd() time.Duration {
	f := &n.sim.failSafe
	switch {
	case n.staysDown:
		return 24 * time.Hour
	case f.hasDisabled() && n.killed.Load():
		return time.Duration(1+f.rng.IntN([]int{1, 60, 3600}[f.rng.IntN(3)])) * time.Second
	}
	return time.Second
}

// startedForDead is a rare state: a node starts after the last fault while cursors of a dead node wait.
const startedForDead = "a node was started for the cursors of a dead one"

// awaitStart waits until the next process of node n may start.
func (p *pushSimulation) awaitStart(n *pushNode) {
	due := time.Now().Add(n.downtimeAfterEnd())
	for p.ctx.Err() == nil && !p.isEnding.Load() {
		_ = clock.Sleep(p.ctx, time.Second) // the loop checks the context
		if p.canStart(n.index, due) {
			return
		}
	}
}

// canStart reports whether the i-th node may start. While faults happen, the node may start at the time due; after the
// last fault, the recovery decides.
func (p *pushSimulation) canStart(i int, due time.Time) bool {
	isDue := !time.Now().Before(due)
	if !p.failSafe.hasDisabled() || !p.IsFaultFree() {
		return isDue
	}
	if p.failSafe.recovery != byStart {
		return p.nodeAt(pushNodes-1-i) == nil
	}
	if !isDue && p.describeOutstanding() != "" {
		p.MarkReached(startedForDead)
	}
	return true
}

// runningNodes returns the running nodes and their names.
func (p *pushSimulation) runningNodes() (all []*pushNode, names []string) {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	for _, n := range p.nodes {
		if n != nil && !n.killed.Load() {
			all, names = append(all, n), append(names, n.who)
		}
	}
	return all, names
}

const (
	// recoverAfter is the time between the last fault, or the start of a node, and the recovery. In this time, late
	// beats of dead nodes arrive, and running nodes detect which nodes are dead.
	recoverAfter = 90 * time.Second
	// recoveredWithin is the maximum duration of a recovery.
	recoveredWithin = time.Minute
)

// recoverCursors starts the recovery of dead nodes' cursors after the last fault, once for each set of running nodes.
// It returns an error if a shard has no running owner a minute later.
func (p *pushSimulation) recoverCursors(rng random.Source) error {
	f := &p.failSafe
	nodes, names := p.runningNodes()
	if !f.hasDisabled() || !p.IsFaultFree() || len(nodes) == 0 {
		return nil
	}
	if !slices.Equal(f.running, names) {
		f.running, f.since, f.recovered, f.shards = names, time.Now(), time.Time{}, nil
	}
	switch {
	case !f.recovered.IsZero() && time.Since(f.recovered) > recoveredWithin:
		if shard, of, isFound := p.findOrphaned(f.shards); isFound {
			return fmt.Errorf("P21: %v after the recovery began, shard %d still belongs to %q; the running nodes are %v", recoveredWithin, shard, of, names)
		}
	case f.recovered.IsZero() && time.Since(f.since) > recoverAfter:
		f.recovered = time.Now()
		n := nodes[rng.IntN(len(nodes))]
		if f.recovery == byStart {
			return p.restartForOrphaned(n)
		}
		return p.notifyOfCursors(n)
	}
	return nil
}

// findOrphaned returns the first shard whose owner does not run, and the owner.
func (p *pushSimulation) findOrphaned(shards []int) (shard int, owner string, isFound bool) {
	for _, shard := range shards {
		if owner := p.observer.ShardOwner(shard); !slices.Contains(p.failSafe.running, owner) {
			return shard, owner, true
		}
	}
	return 0, "", false
}

// restartForOrphaned restarts a node if the owner of a shard does not run. Nodes without fail-safe do not replace such
// an owner if late beats made it seem alive after they had started.
func (p *pushSimulation) restartForOrphaned(n *pushNode) error {
	f := &p.failSafe
	for shard := range repository.ShardCount {
		f.shards = append(f.shards, shard)
	}
	if shard, of, isFound := p.findOrphaned(f.shards); isFound {
		if f.restarted {
			return fmt.Errorf("P21: a node was started, but shard %d still belongs to %q", shard, of)
		}
		f.restarted = true
		n.cancel()
		p.MarkReached(startedForDead)
	}
	return nil
}

// notifyOfCursors notifies a node of all cursors that the recovery itself does not find.
func (p *pushSimulation) notifyOfCursors(n *pushNode) error {
	f := &p.failSafe
	for _, id := range p.observer.Cursors() {
		// A fail-safe worker finds overdue jobs, but not a consumer's unanswered request for a bundle. A real consumer
		// would repeat the request, so the node is notified here.
		if followed, requested, _ := p.observer.Replaying(id); f.recovery == byWorker && followed == requested {
			continue
		}
		cursor, err := domain.ParseCursorID(id)
		if err != nil {
			return err
		}
		n.notifyChanged(cursor)
		f.shards = append(f.shards, repository.ShardOf(cursor))
	}
	return nil
}

// pickRunning returns a random running node, or nil.
func (p *pushSimulation) pickRunning(rng random.Source) *pushNode {
	nodes, _ := p.runningNodes()
	if len(nodes) == 0 {
		return nil
	}
	return nodes[rng.IntN(len(nodes))]
}

// notifyCreated notifies the engine of a new cursor. Rule P21 counts this as a request to serve the cursor.
func (n *pushNode) notifyCreated(id domain.CursorID, stream domain.StreamName) {
	n.members.noteAsked(id)
	n.engine.Created(id, stream)
}

// notifyChanged notifies the engine of a changed cursor. Rule P21 counts this as a request to serve the cursor.
func (n *pushNode) notifyChanged(id domain.CursorID) {
	n.members.noteAsked(id)
	n.engine.Changed(id)
}
