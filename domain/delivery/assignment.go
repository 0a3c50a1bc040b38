package delivery

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/repository"
)

// deadAfter is how long the beat of a node has not moved, on the clock of the observer, when
// its shards are taken over.
const deadAfter = 10 * time.Second

// A nodeSighting is what a node has seen of another one.
type nodeSighting struct {
	beat      int64
	signalled int64     // signals that were handled
	moved     time.Time // when beat was seen to have moved; on the monotonic clock of the observer
	isStored  bool      // the last read has shown the node
}

// isAlive reports whether the node was seen to move in the last deadAfter.
func (s *nodeSighting) isAlive(now time.Time) bool { return s != nil && now.Sub(s.moved) < deadAfter }

// An allocation is what a node does about the assignment of shards.
type allocation struct {
	release []int // shards that the node has too many of
	take    []int // shards without an owner, or of one that it replaces
	free    []int // shards of owners that it replaces, beyond its quota
}

// allocateShards returns which shards self takes and which it releases, so that shards are spread
// evenly over the nodes alive. alive has self, too. Nodes that see the same have the same
// quotas, which add up to all shards. What is beyond the quota of self is free afterwards, so that
// nodes take it that replace no owner.
func allocateShards(self string, alive []string, owners *[repository.ShardCount]string, replaces func(owner string) bool) allocation {
	alive = slices.Clone(alive)
	slices.Sort(alive)
	rank, n := slices.Index(alive, self), len(alive)
	quota := repository.ShardCount / n
	if rank < repository.ShardCount%n {
		quota++
	}
	var a allocation
	var owned []int
	for shard, owner := range owners {
		if owner == self {
			owned = append(owned, shard)
		}
	}
	if len(owned) > quota {
		a.release = owned[quota:]
	}
	// Nodes that take shards at the same time begin at different ones.
	first := rank * repository.ShardCount / n
	for i := range repository.ShardCount {
		shard := (first + i) % repository.ShardCount
		owner := owners[shard]
		isReplaced := owner != "" && owner != self && replaces(owner)
		switch hasRoom := len(owned)+len(a.take) < quota; {
		case hasRoom && (owner == "" || isReplaced):
			a.take = append(a.take, shard)
		case isReplaced:
			a.free = append(a.free, shard)
		}
	}
	return a
}
