package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// ObjectSweeper forgets old rows of objects; see [domain.ObjectRetention]. Any node may call any method
// at any time, while others ingest events.
type ObjectSweeper interface {
	// Shards returns the shards of all buckets, in the order of buckets, then of numbers. One that is new
	// may be missing.
	Shards(ctx context.Context) ([]ObjectShard, error)

	// Forget forgets what the retention of the store permits now, of up to limit objects of a shard after
	// an id; the empty id is before all of them. A call that has failed, or whose process has ended, may
	// be repeated: what it has forgotten is forgotten. An object that cannot be swept does not keep
	// the others from it: the page counts it, and has the first of such errors.
	Forget(ctx context.Context, shard ObjectShard, after string, limit int) (SweptObjects, error)

	// Usage counts the documents of a shard, and estimates how many bytes they have.
	Usage(ctx context.Context, shard ObjectShard) (ShardUsage, error)

	// TakeSweep reports whether this node is to sweep, and from where: no sweep has begun in the time
	// every before now, or one did not end and has not moved for lease. If so, it is this node's.
	TakeSweep(ctx context.Context, now time.Time, every, lease time.Duration) (sweep ObjectSweep, isTaken bool, err error)

	// MoveSweep stores the progress of a sweep at a time, and returns the stored sweep. It fails with
	// Conflict if another node has taken it over.
	MoveSweep(ctx context.Context, sweep ObjectSweep, now time.Time) (ObjectSweep, error)
}

// An ObjectShard is a part of the objects of a bucket.
type ObjectShard struct {
	Bucket string
	Number int
}

// SweptObjects is the outcome of a sweep for a page of objects.
type SweptObjects struct {
	Objects int // that were looked at
	Rows    int // that were forgotten
	Gone    int // objects that were forgotten whole
	Failed  int // objects that are left as they are
	Failure error
	// More reports that objects follow, after the id After.
	More  bool
	After string
}

// ShardUsage says how full a shard is.
type ShardUsage struct {
	Objects int64
	Rows    int64 // spilled ones, with their copies
	Bytes   int64 // estimated
}

// An ObjectSweep is the progress of a sweep: all objects before After in Shard are swept, and all
// shards before it.
type ObjectSweep struct {
	Shard   ObjectShard // zero: none yet
	After   string
	IsDone  bool
	Version SweepVersion
}

// A SweepVersion identifies a state of a sweep for its store.
type SweepVersion string

// ObjectLedger is what a store of objects offers.
type ObjectLedger interface {
	Objects
	ObjectSweeper
}

// ObjectKeeping says for how long a store keeps rows, and by which clock.
type ObjectKeeping struct {
	Retention domain.ObjectRetention
	Clock     func() time.Time
}
