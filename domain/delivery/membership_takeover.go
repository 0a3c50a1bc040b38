package delivery

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// canReplace reports whether this node takes the shards of owner without being asked, because
// owner has died. With [Options.NoTakeover], owner must have died before this node started, or
// up to deadAfter later: because of a stale read, a dead node may seem to beat after the first
// look.
func (m *membership) canReplace(owner string, now time.Time) bool {
	s := m.seen[owner]
	if s.isAlive(now) {
		return false
	}
	return !m.engine.opts.NoTakeover || s == nil || s.moved.Before(m.looked.Add(deadAfter))
}

// askAfter is how long a node remembers that it was asked about a shard: long enough to detect
// that the owner has died.
const askAfter = 2 * deadAfter

// requestShard records that this node was asked about a cursor. If the owner of its shard has
// died, the node takes the shard.
func (m *membership) requestShard(id domain.CursorID) {
	if !m.engine.opts.NoTakeover {
		return // the node takes the shard anyway
	}
	m.mu.Lock()
	m.asked[repository.ShardOf(id)] = time.Now()
	m.mu.Unlock()
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// requestedShards returns the shards that the node was asked about and whose owner has died. The node
// takes them even beyond its quota, and then releases others.
func (m *membership) requestedShards(now time.Time, assignment *repository.Assignment) (shards []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for shard, since := range m.asked {
		owner := assignment.Owners[shard]
		switch {
		case owner == m.self:
			delete(m.asked, shard)
		case owner == "" || !m.seen[owner].isAlive(now):
			shards = append(shards, shard)
		case now.Sub(since) >= askAfter:
			delete(m.asked, shard) // the owner of the shard is alive, and gets the signal
		}
	}
	return shards
}

// noteOrphaned records the shards whose owner has died.
func (m *membership) noteOrphaned(now time.Time, assignment *repository.Assignment) {
	var orphaned []int
	for shard, owner := range assignment.Owners {
		if owner != "" && owner != m.self && !m.seen[owner].isAlive(now) {
			orphaned = append(orphaned, shard)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orphaned = orphaned
}

// Orphaned returns the shards whose cursors no node serves because the owner has died. It
// returns an empty list while this node does not know which nodes are alive.
func (e *Engine) Orphaned() []int {
	m := e.members
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.confirmed) >= lapseAfter {
		return nil
	}
	return slices.Clone(m.orphaned)
}
