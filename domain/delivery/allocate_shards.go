package delivery

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/repository"
)

// A node counts as dead when its beat has not changed for deadAfter on the clock of the
// observer. Other nodes then take its shards.
const deadAfter = 10 * time.Second

// A nodeSighting is the last state of another node, as this node has read it.
type nodeSighting struct {
	beat      int64
	signalled int64     // number of signals that were handled
	moved     time.Time // when this node last read a new beat, on this node's monotonic clock
	isStored  bool      // the last read returned the node's document
}

// isAlive reports whether a new beat of the node was read within deadAfter before now.
func (s *nodeSighting) isAlive(now time.Time) bool { return s != nil && now.Sub(s.moved) < deadAfter }

// An allocation is the change of the assignment of shards that a node makes.
type allocation struct {
	release []int // shards that the node has too many of
	take    []int // shards without an owner, or of an owner that the node replaces
	free    []int // shards beyond the node's quota, of owners that it replaces
}

// allocateShards returns which shards self takes and which it releases, so that shards are
// spread evenly over the nodes alive. alive includes self. Nodes that read the same state
// compute the same quotas, whose sum is the number of shards. The shards of dead owners beyond
// the quota of self become free, so that nodes that do not replace owners can take them.
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
	// Nodes that take shards at the same time begin at different shards.
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
