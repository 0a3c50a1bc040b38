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

// A failSafe says which nodes of a push world do not replace nodes that die, and how the cursors of
// dead nodes are served after the last fault. In a world with such nodes, a node that is killed may be
// down for minutes.
type failSafe struct {
	isDisabled [pushNodes]bool
	recovery   recovery
	rng        random.Source
	outage     time.Duration // for which two nodes have run when one is killed that stays down; 0: it was

	running   []string  // nodes that run since the last fault
	since     time.Time // since when these run
	recovered time.Time // when their recovery began; zero: it has not
	shards    []int     // that have to have an owner that runs after the recovery
	restarted bool      // a node was started again, because shards had no owner that ran
}

// A recovery is a way by which the cursors of a dead node are served after the last fault.
type recovery int

// The recoveries. With the last two, a node that is down after the last fault stays down while the
// other one runs.
const (
	byStart  recovery = iota // a node starts
	byAsking                 // a node is asked about each cursor
	byWorker                 // the worker of each node has overdue jobs re-triggered
)

// newFailSafe returns the fail-safe of a world. In half of the worlds it is on.
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

// beginOutage reports once whether a node is to be killed that stays down until the last fault. The
// other one has run for so long that it leaves what the dead node had alone.
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

// downtimeAfterEnd returns for how long a node is down that has ended.
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

// startedForDead is the rare state that a node starts after the last fault while cursors wait.
const startedForDead = "a node was started for the cursors of a dead one"

// awaitStart waits until the next life of a node begins, after the end of n.
func (p *pushSimulation) awaitStart(n *pushNode) {
	due := time.Now().Add(n.downtimeAfterEnd())
	for p.ctx.Err() == nil && !p.isEnding.Load() {
		_ = clock.Sleep(p.ctx, time.Second) // the loop looks at the context
		if p.mayStart(n.index, due) {
			return
		}
	}
}

// mayStart reports whether a node may start that is due at a time. After the last fault, the recovery
// decides.
func (p *pushSimulation) mayStart(i int, due time.Time) bool {
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

// runningNodes returns the nodes that run, and their names.
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
	// recoverAfter is the time after the last fault, or after another node runs, by which late
	// requests have arrived, such as beats of dead nodes, and nodes know which others have died.
	recoverAfter = 90 * time.Second
	// recoveredWithin is the limit for a recovery.
	recoveredWithin = time.Minute
)

// recoverCursors has the cursors of dead nodes served after the last fault, once for the nodes that
// run. It returns an error if a minute later the owner of a shard does not run.
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
			return fmt.Errorf("P21: %v after the recovery began, shard %d is that of %q, and %v run", recoveredWithin, shard, of, names)
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

// findOrphaned returns the first of some shards whose owner does not run.
func (p *pushSimulation) findOrphaned(shards []int) (shard int, owner string, isFound bool) {
	for _, shard := range shards {
		if owner := p.observer.ShardOwner(shard); !slices.Contains(p.failSafe.running, owner) {
			return shard, owner, true
		}
	}
	return 0, "", false
}

// restartForOrphaned stops a node, which starts again, if the owner of a shard does not run: the last
// beats of that owner were late, so that it seemed to die after the nodes had started.
func (p *pushSimulation) restartForOrphaned(n *pushNode) error {
	f := &p.failSafe
	for shard := range repository.ShardCount {
		f.shards = append(f.shards, shard)
	}
	if shard, of, isFound := p.findOrphaned(f.shards); isFound {
		if f.restarted {
			return fmt.Errorf("P21: a node was started, and shard %d is still that of %q", shard, of)
		}
		f.restarted = true
		n.cancel()
		p.MarkReached(startedForDead)
	}
	return nil
}

// notifyOfCursors asks a node about all cursors that the recovery does not find by itself.
func (p *pushSimulation) notifyOfCursors(n *pushNode) error {
	f := &p.failSafe
	for _, id := range p.observer.Cursors() {
		// A worker does not find a consumer's request for a bundle. The consumer would repeat it.
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

// pickRunning returns a node that runs, or nil.
func (p *pushSimulation) pickRunning(rng random.Source) *pushNode {
	nodes, _ := p.runningNodes()
	if len(nodes) == 0 {
		return nil
	}
	return nodes[rng.IntN(len(nodes))]
}

// notifyCreated notifies the engine of a cursor that was created. The node is asked about it.
func (n *pushNode) notifyCreated(id domain.CursorID, stream domain.StreamName) {
	n.members.noteAsked(id)
	n.engine.Created(id, stream)
}

// notifyChanged notifies the engine of a change of a cursor. The node is asked about it.
func (n *pushNode) notifyChanged(id domain.CursorID) {
	n.members.noteAsked(id)
	n.engine.Changed(id)
}
