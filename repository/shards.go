package repository

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// ShardCount is the number of shards. Each cursor belongs to one shard, and one node at a time serves a
// shard.
const ShardCount = 64

// ShardOf returns the shard of a cursor.
func ShardOf(id domain.CursorID) int {
	h := fnv.New32a()
	h.Write([]byte(id.String()))
	return int(h.Sum32() % ShardCount)
}

// Shards lists the cursors, so that a node finds all cursors after a restart.
type Shards interface {
	WatchPages

	// Cursors returns the entries of a shard, and the streams that have watches in the shard; see
	// [WatchPages]. An entry may belong to a cursor that was never created. If some entries cannot be
	// read, Cursors returns the readable entries together with an error of kind Damaged or NewerFormat.
	Cursors(ctx context.Context, shard int) ([]ShardEntry, []WatchedStream, error)

	// AddReplay adds a replay request to the requests in a cursor's entry, with
	// [domain.ReplayRequests.Add], and returns the number of the request. followed is the Followed of the
	// cursor's Standing. If the entry already has a request with the same ID, AddReplay adds nothing and
	// returns the number of that request, so the call may be repeated. The request has been executed when
	// Followed is at least number. AddReplay fails with NotFound if the shard has no entry of the cursor,
	// and in the cases in which Add fails.
	AddReplay(ctx context.Context, id domain.CursorID, followed int, r domain.ReplayRequest) (number int, err error)

	// Replays returns the last requests to replay of a cursor. The result may be stale. Replays fails
	// with NotFound if the shard has no entry of the cursor.
	Replays(ctx context.Context, id domain.CursorID) (domain.ReplayRequests, error)
}

// A ShardEntry is the entry of a cursor in its shard. The entry is stored before the cursor; the entry
// for the cursor of a watch is stored before the first outstanding delivery of the cursor.
type ShardEntry struct {
	Cursor domain.CursorID
	Stream domain.StreamName
	// Due is not later than the due time of any retry of the cursor. It is zero if the cursor has no
	// retry.
	Due time.Time
	// Requested is the number of the last request to replay. It lets the owner of the cursor find a
	// request whose signal was lost.
	Requested int
	// Changes gets a new value with each change of the cursor's subscription in [Definitions]. It lets the owner
	// of the cursor find a change whose signal was lost.
	Changes int64
}

// Nodes stores the heartbeats of nodes and the assignment of shards to nodes. The assignment saves work;
// safety does not depend on it. If two nodes serve one shard at the same time, no delivery is lost: the
// store accepts settlements of a cursor only from the node that called Load last. Reads may be stale.
type Nodes interface {
	// Beat stores the beat of a node, unless a later beat of the node is stored. A node without a new
	// beat for NodeRetention is removed.
	Beat(ctx context.Context, n Node) error

	// Nodes returns the last beat of each node, and the assignment. A node whose last beat cannot be
	// read is missing until it stores its next beat.
	Nodes(ctx context.Context) ([]Node, Assignment, error)

	// Assign stores the owners of a as the next version of the assignment. It fails with Conflict if the
	// stored assignment does not have a.Version. It replaces an unreadable assignment of any version.
	Assign(ctx context.Context, a Assignment) error

	// Leave removes a node that is about to end. Its shards remain assigned to the node.
	Leave(ctx context.Context, incarnation string) error
}

// NodeRetention is the time for which the last beat of a node is stored.
const NodeRetention = 10 * time.Minute

// A Node is the state that a node reports to other nodes. The node counts as alive while Beat grows.
type Node struct {
	Incarnation string
	Beat        int64     // number of the beat; the first beat has number 1
	Signals     []Signal  // the last signals of the node, up to MaxSignals, in order
	Signalled   int64     // number of all signals of the node, including signals that are no longer in Signals
	Awaits      StreamSet // data streams whose cursors the node serves
}

// MaxSignals is the limit for the signals of a Node.
const MaxSignals = 64

// A Signal announces a write to other nodes. If Cursor is zero, Stream has new entries. If Stream is
// zero, the receiver of Cursor was changed. If both are set, Cursor is a new cursor of Stream.
type Signal struct {
	Stream domain.StreamName
	Cursor domain.CursorID
}

// An Assignment names the node that serves each shard.
type Assignment struct {
	Owners  [ShardCount]string // incarnations; "": no node
	Version int64              // 0: no assignment is stored, and Owners is empty
	// Damage is nil, or the reason why the stored assignment cannot be read. In that case Version is 0,
	// and the caller assigns the shards again, based on the last assignment that it has read.
	Damage error
}
