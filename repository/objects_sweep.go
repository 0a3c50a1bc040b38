package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// ObjectSweeper forgets old rows of objects; see [domain.ObjectRetention]. Any node may call any method
// at any time, while other nodes ingest events.
type ObjectSweeper interface {
	// Shards returns the shards of all buckets, sorted by bucket, then by number. A new shard may be
	// missing.
	Shards(ctx context.Context) ([]ObjectShard, error)

	// Forget removes the rows whose retention has passed, from up to limit objects of a shard after an
	// id; the empty id is before all ids. If the call fails, or its process ends, the rows that were
	// removed stay removed, and the call may be repeated. An object that cannot be swept does not affect
	// other objects: Failed counts the objects that could not be swept, and Failure is the first error.
	Forget(ctx context.Context, shard ObjectShard, after string, limit int) (SweptObjects, error)

	// Usage counts the documents of a shard, and estimates their size in bytes.
	Usage(ctx context.Context, shard ObjectShard) (ShardUsage, error)

	// TakeSweep assigns a due sweep to this node, and returns the position at which it continues. A
	// sweep is due if the last sweep is finished and began at least the duration every ago, or if the
	// last sweep is unfinished and stored no progress for the duration lease. If no sweep is due, isTaken
	// is false.
	TakeSweep(ctx context.Context, now time.Time, every, lease time.Duration) (sweep ObjectSweep, isTaken bool, err error)

	// MoveSweep stores the progress of a sweep at a time, and returns the stored sweep. It fails with
	// Conflict if another node has continued the sweep.
	MoveSweep(ctx context.Context, sweep ObjectSweep, now time.Time) (ObjectSweep, error)
}

// An ObjectShard is a part of the objects of a bucket.
type ObjectShard struct {
	Bucket string
	Number int
}

// SweptObjects is the outcome of a sweep for a page of objects.
type SweptObjects struct {
	Objects          int // number of objects that were checked
	Rows             int // number of rows that were forgotten
	ForgottenObjects int // number of objects that were forgotten completely
	Failed           int // number of objects that could not be swept
	Failure          error
	// More reports that the shard has objects after the id After.
	More  bool
	After string
}

// ShardUsage is the number and size of the documents of a shard.
type ShardUsage struct {
	Objects int64
	Rows    int64 // number of spilled rows, which have separate documents, including their copies
	Bytes   int64 // estimated size of the documents
}

// An ObjectSweep is the progress of a sweep: all shards before Shard are swept, and the objects of Shard
// up to After.
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

// ObjectKeeping is the retention of a store for rows, and the clock by which it is measured.
type ObjectKeeping struct {
	Retention domain.ObjectRetention
	Clock     func() time.Time
}
