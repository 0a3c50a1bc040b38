package repository

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// ShardCount is the number of shards, over which all cursors are spread. A shard is served by
// one node at a time.
const ShardCount = 64

// ShardOf returns the shard of a cursor.
func ShardOf(id domain.CursorID) int {
	h := fnv.New32a()
	h.Write([]byte(id.String()))
	return int(h.Sum32() % ShardCount)
}

// Shards lists the cursors, so that a node that knows nothing finds whatever waits.
type Shards interface {
	// Cursors returns the entries of all cursors of a shard. An entry may be that of a cursor
	// that was never created.
	Cursors(ctx context.Context, shard int) ([]ShardEntry, error)
}

// A ShardEntry is that of a cursor in its shard. It is stored before the cursor.
type ShardEntry struct {
	Cursor domain.CursorID
	Stream domain.StreamName
	// Due is not later than the due time of any retry of the cursor. It is zero if the cursor
	// has none.
	Due time.Time
}
