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
	WatchPages

	// Cursors returns the entries of all cursors of a shard, and the streams of which it has watches:
	// see [WatchPages]. An entry may be that of a cursor that was never created. It fails with Damaged
	// or NewerFormat if some entries cannot be read, and returns the others nevertheless.
	Cursors(ctx context.Context, shard int) ([]ShardEntry, []WatchedStream, error)

	// AddReplay adds a request to the entry of a cursor as [domain.ReplayRequests.Add] does, and
	// fails as that does. A request whose ID is there already is not added again, so that the
	// call may be repeated. It returns the number of the request: a Standing that has followed it is
	// newer than all that was stored before the call. It fails with NotFound if the shard does not
	// list the cursor.
	AddReplay(ctx context.Context, id domain.CursorID, followed int, r domain.ReplayRequest) (number int, err error)

	// Replays returns the last requests of a cursor. It may be a stale read. It fails with
	// NotFound if the shard does not list the cursor.
	Replays(ctx context.Context, id domain.CursorID) (domain.ReplayRequests, error)
}

// A ShardEntry is that of a cursor in its shard. It is stored before the cursor, or for the cursor of a
// watch, before something of it is outstanding.
type ShardEntry struct {
	Cursor domain.CursorID
	Stream domain.StreamName
	// Due is not later than the due time of any retry of the cursor. It is zero if the cursor
	// has none.
	Due time.Time
	// Requested is the number of the last request to replay, so that an owner finds one of which
	// no signal came.
	Requested int
	// Changes is another number after each change of the subscription of the cursor that
	// [Definitions] has stored, so that an owner finds one of which no signal came.
	Changes int64
}

// Nodes keeps which nodes are alive, and which of them serves each shard. That spares work and
// decides nothing: two nodes that serve one shard at the same time lose nothing, because
// loading a cursor refuses the settlements of earlier owners. Reads may be stale.
type Nodes interface {
	// Beat stores what n says of itself, unless it has stored a later beat. A node that has
	// stored nothing for NodeRetention is forgotten.
	Beat(ctx context.Context, n Node) error

	// Nodes returns the last beat of each node, and the assignment. A node whose last beat cannot
	// be read is missing until it has stored the next one.
	Nodes(ctx context.Context) ([]Node, Assignment, error)

	// Assign replaces the assignment that has the version of a by one with the owners of a and
	// the next version, or an assignment that cannot be read, whatever its version. It fails with
	// Conflict if the assignment has another version.
	Assign(ctx context.Context, a Assignment) error

	// Leave removes a node that ends. Its shards remain assigned to it.
	Leave(ctx context.Context, incarnation string) error
}

// NodeRetention is how long the last beat of a node is kept.
const NodeRetention = 10 * time.Minute

// A Node is what a node says of itself. Another node knows that it is alive when Beat moves.
type Node struct {
	Incarnation string
	Beat        int64     // 1 for the first one
	Signals     []Signal  // the last ones, up to MaxSignals, in order
	Signalled   int64     // how many there were, those before Signals included
	Awaits      StreamSet // data streams of which it serves cursors
}

// MaxSignals is the limit for the signals of a Node.
const MaxSignals = 64

// A Signal announces to other nodes what a node has stored: entries of Stream, a new Cursor of
// Stream, or with a zero Stream, another receiver of Cursor.
type Signal struct {
	Stream domain.StreamName
	Cursor domain.CursorID
}

// An Assignment says which node serves each shard.
type Assignment struct {
	Owners  [ShardCount]string // incarnations; "": no node
	Version int64              // 0: no assignment is stored; its owners are empty
	// Damage says why what is stored cannot be read; nil: it can be. With it, Version is 0. The
	// caller assigns the shards again, by what it has read before.
	Damage error
}
