package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// ObjectSweeper forgets old rows of objects; see [domain.ObjectRetention]. Any node may call any method
// at any time, while others ingest events.
type ObjectSweeper interface {
	// Shards returns the shards of all buckets, in the order of buckets, then of numbers. A new one may
	// be missing.
	Shards(ctx context.Context) ([]ObjectShard, error)

	// Forget forgets the rows that the retention of the store permits to forget now, of up to limit
	// objects of a shard after an id; the empty id is before all of them. If the call fails, or its
	// process ends, it may be repeated, and rows that were forgotten stay forgotten. An object that
	// cannot be swept does not affect the others: the result counts it, and has the first such error.
	Forget(ctx context.Context, shard ObjectShard, after string, limit int) (SweptObjects, error)

	// Usage counts the documents of a shard, and estimates their size in bytes.
	Usage(ctx context.Context, shard ObjectShard) (ShardUsage, error)

	// TakeSweep assigns a due sweep to this node, and returns where it continues. A sweep is due if
	// none has begun within the duration every before now, or if the last one is unfinished and has
	// not moved for the duration lease. If no sweep is due, isTaken is false.
	TakeSweep(ctx context.Context, now time.Time, every, lease time.Duration) (sweep ObjectSweep, isTaken bool, err error)

	// MoveSweep stores the progress of a sweep at a time, and returns the stored sweep. It fails with
	// Conflict if another node has taken the sweep over.
	MoveSweep(ctx context.Context, sweep ObjectSweep, now time.Time) (ObjectSweep, error)
}

// An ObjectShard is a part of the objects of a bucket.
type ObjectShard struct {
	Bucket string
	Number int
}

// SweptObjects is the outcome of a sweep for a page of objects.
type SweptObjects struct {
	Objects int // number of objects that were checked
	Rows    int // number of rows that were forgotten
	Gone    int // number of objects that were forgotten whole
	Failed  int // number of objects that could not be swept
	Failure error
	// More reports that there are objects after the id After.
	More  bool
	After string
}

// ShardUsage is the number and size of the documents of a shard.
type ShardUsage struct {
	Objects int64
	Rows    int64 // spilled rows, with their copies
	Bytes   int64 // estimated
}

// An ObjectSweep is the progress of a sweep: all objects before After in Shard are swept, and all
// shards before it.
type ObjectSweep struct {
	Shard   ObjectShard // zero: no shard yet
	After   string
	IsDone  bool
	Version SweepVersion
}

// A SweepVersion identifies a state of a sweep for its store.
type SweepVersion string

// ObjectLedger has all methods of a store of objects.
type ObjectLedger interface {
	Objects
	ObjectSweeper
}

// ObjectKeeping sets for how long a store keeps rows, and by which clock.
type ObjectKeeping struct {
	Retention domain.ObjectRetention
	Clock     func() time.Time
}
