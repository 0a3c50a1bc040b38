package simulate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A memberChecker wraps the store of nodes for one node, and checks rule P21: the node takes no shard from an owner
// whose beat has advanced in the last 10 seconds. If the fail-safe of the node is disabled, the node takes a shard from
// a dead owner only in two cases: the owner's beat last advanced less than 10 seconds after the node started, or the
// node was asked about a cursor of the shard.
type memberChecker struct {
	store       repository.Nodes
	self        string
	isDisabled  bool
	fail        func(error)
	markReached func(state string)

	mu     sync.Mutex
	began  time.Time // time at which the node first read the state of the other nodes; zero before that
	beats  map[string]int64
	moved  map[string]time.Time                    // time at which the beat of each node last advanced
	owners map[int64][repository.ShardCount]string // owners that the node has read, by version of the assignment
	asked  [repository.ShardCount]bool             // true if the node was asked about a cursor of the shard
	left   map[string]bool                         // dead nodes whose shards this node did not take
}

// deadAfter is the time without a new beat after which other nodes consider a node dead.
const deadAfter = 10 * time.Second

func newMemberChecker(n *pushNode) *memberChecker {
	return &memberChecker{
		store: n.store, self: n.who, isDisabled: n.sim.failSafe.isDisabled[n.index], fail: n.sim.Fail, markReached: n.sim.MarkReached,
		beats: make(map[string]int64), moved: make(map[string]time.Time), left: make(map[string]bool), owners: make(map[int64][repository.ShardCount]string),
	}
}

// noteAsked records that the node was asked about a cursor.
func (m *memberChecker) noteAsked(id domain.CursorID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[repository.ShardOf(id)] = true
}

// Beat implements [repository.Nodes].
func (m *memberChecker) Beat(ctx context.Context, n repository.Node) error {
	return m.store.Beat(ctx, n)
}

// Leave implements [repository.Nodes].
func (m *memberChecker) Leave(ctx context.Context, incarnation string) error {
	return m.store.Leave(ctx, incarnation)
}

// Nodes implements [repository.Nodes].
func (m *memberChecker) Nodes(ctx context.Context) ([]repository.Node, repository.Assignment, error) {
	nodes, assignment, err := m.store.Nodes(ctx)
	if err == nil {
		m.noteMembers(nodes, &assignment)
	}
	return nodes, assignment, err
}

// noteMembers records the nodes and owners that the node has read.
func (m *memberChecker) noteMembers(nodes []repository.Node, assignment *repository.Assignment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.began.IsZero() {
		m.began = now
	}
	for i := range nodes {
		if n := &nodes[i]; n.Beat > m.beats[n.Incarnation] {
			m.beats[n.Incarnation], m.moved[n.Incarnation] = n.Beat, now
		}
	}
	for shard, owner := range assignment.Owners {
		if _, isKnown := m.moved[owner]; owner != "" && !isKnown {
			m.moved[owner] = now // the owner's document is missing or not yet visible
		}
		if owner != m.self && m.isDisabled && !m.asked[shard] && m.moved[owner].After(m.began.Add(deadAfter)) && now.Sub(m.moved[owner]) > 2*deadAfter {
			if !m.left[owner] {
				m.markReached("a node left the shards of a dead one alone")
			}
			m.left[owner] = true
		}
	}
	if assignment.Damage == nil {
		m.owners[assignment.Version] = assignment.Owners
	}
}

// Assign implements [repository.Nodes].
func (m *memberChecker) Assign(ctx context.Context, next repository.Assignment) error {
	m.mu.Lock()
	if before, isKnown := m.owners[next.Version]; isKnown {
		for shard, owner := range before {
			if owner == "" || owner == m.self || owner == next.Owners[shard] {
				continue
			}
			if err := m.checkTakeover(shard, owner); err != nil {
				m.fail(err)
			}
		}
	}
	m.mu.Unlock()
	return m.store.Assign(ctx, next)
}

// checkTakeover returns an error if rule P21 does not allow the node to take the shard from its owner.
func (m *memberChecker) checkTakeover(shard int, owner string) error {
	moved := m.moved[owner]
	switch {
	case time.Since(moved) < deadAfter:
		return fmt.Errorf("P21: %s takes shard %d of %s, which was alive %v ago", m.self, shard, owner, time.Since(moved))
	case !m.isDisabled || moved.Before(m.began.Add(deadAfter)):
	case !m.asked[shard]:
		return fmt.Errorf("P21: %s takes shard %d of %s, which died %[4]v after %[1]s had started with its fail-safe disabled", m.self, shard, owner, moved.Sub(m.began))
	default:
		m.markReached("a node took a shard of a dead one, because it was asked")
	}
	return nil
}
