package repository

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// ShardCount is the number of shards. All cursors are spread over them. A shard is served by one node
// at a time.
const ShardCount = 64

// ShardOf returns the shard of a cursor.
func ShardOf(id domain.CursorID) int {
	h := fnv.New32a()
	h.Write([]byte(id.String()))
	return int(h.Sum32() % ShardCount)
}

// Shards lists the cursors, so that a node with an empty memory finds all cursors.
type Shards interface {
	WatchPages

	// Cursors returns the entries of all cursors of a shard, and the streams that have watches in it:
	// see [WatchPages]. An entry may belong to a cursor that was never created. It fails with Damaged
	// or NewerFormat if some entries cannot be read, and returns the others nevertheless.
	Cursors(ctx context.Context, shard int) ([]ShardEntry, []WatchedStream, error)

	// AddReplay adds a request to the entry of a cursor as [domain.ReplayRequests.Add] does, and fails
	// in the same cases. A request whose ID was added before is not added again, so the call may be
	// repeated. It returns the number of the request: a Standing that has followed this request is
	// newer than everything that was stored before the call. It fails with NotFound if the shard does
	// not list the cursor.
	AddReplay(ctx context.Context, id domain.CursorID, followed int, r domain.ReplayRequest) (number int, err error)

	// Replays returns the last requests of a cursor. It may be a stale read. It fails with
	// NotFound if the shard does not list the cursor.
	Replays(ctx context.Context, id domain.CursorID) (domain.ReplayRequests, error)
}

// A ShardEntry is the entry of a cursor in its shard. It is stored before the cursor; for the cursor of
// a watch, before its first outstanding delivery.
type ShardEntry struct {
	Cursor domain.CursorID
	Stream domain.StreamName
	// Due is not later than the due time of any retry of the cursor. It is zero if the cursor has no
	// retry.
	Due time.Time
	// Requested is the number of the last request to replay. With it, an owner finds a request whose
	// signal was lost.
	Requested int
	// Changes differs after each change of the cursor's subscription that [Definitions] has stored.
	// With it, an owner finds a change whose signal was lost.
	Changes int64
}

// Nodes keeps which nodes are alive, and which of them serves each shard. That saves work, but safety
// does not depend on it: two nodes that serve one shard at the same time lose nothing, because Load
// makes the store refuse the settlements of earlier owners. Reads may be stale.
type Nodes interface {
	// Beat stores the beat of a node, unless a later one is stored. A node that has stored nothing for
	// NodeRetention is forgotten.
	Beat(ctx context.Context, n Node) error

	// Nodes returns the last beat of each node, and the assignment. A node whose last beat cannot
	// be read is missing until it has stored the next one.
	Nodes(ctx context.Context) ([]Node, Assignment, error)

	// Assign replaces the assignment that has the version of a by one with the owners of a and the next
	// version. An assignment that cannot be read is replaced whatever its version. It fails with
	// Conflict if the assignment has another version.
	Assign(ctx context.Context, a Assignment) error

	// Leave removes a node that is about to end. Its shards remain assigned to it.
	Leave(ctx context.Context, incarnation string) error
}

// NodeRetention is the time for which the last beat of a node is kept.
const NodeRetention = 10 * time.Minute

// A Node is what a node reports of itself. Other nodes know that it is alive while Beat grows.
type Node struct {
	Incarnation string
	Beat        int64     // 1 for the first beat
	Signals     []Signal  // the last signals, up to MaxSignals, in order
	Signalled   int64     // number of all signals, including those before Signals
	Awaits      StreamSet // data streams whose cursors it serves
}

// MaxSignals is the limit for the signals of a Node.
const MaxSignals = 64

// A Signal announces a write to other nodes: entries of Stream, a new Cursor of Stream or, with a zero
// Stream, a changed receiver of Cursor.
type Signal struct {
	Stream domain.StreamName
	Cursor domain.CursorID
}

// An Assignment says which node serves each shard.
type Assignment struct {
	Owners  [ShardCount]string // incarnations; "": no node
	Version int64              // 0: no assignment is stored, and Owners is empty
	// Damage is nil, or the reason why the stored assignment cannot be read. With it, Version is 0. The
	// caller assigns the shards again, based on what it has read before.
	Damage error
}
