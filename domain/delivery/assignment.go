package delivery

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/repository"
)

// deadAfter is the time after which a node counts as dead: its beat has not changed, by the
// clock of the observer. Then its shards are taken over.
const deadAfter = 10 * time.Second

// A nodeSighting is the last state of another node, as this node has read it.
type nodeSighting struct {
	beat      int64
	signalled int64     // number of signals that were handled
	moved     time.Time // when this node read a new beat; on its monotonic clock
	isStored  bool      // the last read has shown the node
}

// isAlive reports whether a new beat of the node was read within deadAfter before now.
func (s *nodeSighting) isAlive(now time.Time) bool { return s != nil && now.Sub(s.moved) < deadAfter }

// An allocation is the change of the assignment of shards that a node makes.
type allocation struct {
	release []int // shards that the node has too many of
	take    []int // shards without an owner, or of one that it replaces
	free    []int // shards of owners that it replaces, beyond its quota
}

// allocateShards returns which shards self takes and which it releases, so that shards are
// spread evenly over the nodes alive. alive includes self. Nodes that read the same state
// compute the same quotas, which add up to all shards. The shards of dead owners beyond the
// quota of self become free, for nodes that do not replace owners.
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
