package ledger

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/messagehub/messagehub/repository"
)

// A Sweeper removes rows whose retention has ended, and counts the documents in each shard. Only
// one node sweeps at a time. After a crash, any node resumes the sweep at its last stored position.
type Sweeper struct {
	store  repository.ObjectSweeper
	report func(repository.ObjectShard, repository.ShardUsage)
	opts   Options
	failed repository.ObjectShard // shard that the last sweep failed to process
}

const (
	sweepEvery   = 24 * time.Hour
	sweepLease   = 15 * time.Minute
	sweepTurn    = 10 * time.Minute // maximum interval between checks whether a sweep is due
	sweptObjects = 100              // maximum number of objects on a page of a sweep
)

// The sizes of shards, in bytes. The sweep logs a warning for a shard that is larger than
// ShardWarning, because a shard of ShardLimit bytes refuses objects.
const (
	ShardLimit   = int64(20 << 30)
	ShardWarning = ShardLimit / 10 * 8
)

// NewSweeper returns a Sweeper that passes the counts of each shard to report. It sweeps only in
// Run and Sweep.
func NewSweeper(store repository.ObjectSweeper, report func(repository.ObjectShard, repository.ShardUsage), opts Options) *Sweeper {
	return &Sweeper{store: store, report: report, opts: opts.withDefaults()}
}

// Run sweeps whenever a sweep is due, until ctx ends.
func (s *Sweeper) Run(ctx context.Context) {
	for {
		jitter := time.Duration(s.opts.Random() % uint64(sweepTurn/2))
		timer := time.NewTimer(sweepTurn/2 + jitter)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.opts.Logger.ErrorContext(ctx, "the sweep of objects is not complete; the next one continues", "error", err)
		}
	}
}

// Sweep sweeps all shards, if a sweep is due and no other node is sweeping. It skips and logs
// objects that it cannot sweep. If it cannot sweep a shard, Sweep fails, and the next call resumes
// at this shard. If the shard fails again, it is skipped, so that it does not block other shards.
// Sweep must not be called concurrently.
func (s *Sweeper) Sweep(ctx context.Context) error {
	sweep, isTaken, err := s.store.TakeSweep(ctx, s.opts.Clock(), sweepEvery, sweepLease)
	if err != nil || !isTaken {
		return err
	}
	shards, err := s.store.Shards(ctx)
	if err != nil {
		return err
	}
	began := s.opts.Clock()
	var total repository.SweptObjects
	failedShards := 0
	for _, shard := range shards {
		if compareShards(shard, sweep.Shard) < 0 {
			continue // the sweep has already processed this shard
		}
		if shard != sweep.Shard {
			sweep.Shard, sweep.After = shard, ""
			if sweep, err = s.store.MoveSweep(ctx, sweep, s.opts.Clock()); err != nil {
				return err
			}
		}
		sweep, err = s.sweepShard(ctx, sweep, &total)
		hasFailed := s.failed == shard
		switch {
		case err == nil && hasFailed:
			s.failed = repository.ObjectShard{}
		case err == nil:
		case ctx.Err() != nil:
			return err
		case !hasFailed:
			s.failed = shard
			return err
		default:
			failedShards++
			s.opts.Logger.ErrorContext(ctx, "a shard of objects is not swept; the others are", shardAttr(shard), slog.Any("error", err))
		}
	}
	sweep.IsDone = true
	if _, err = s.store.MoveSweep(ctx, sweep, s.opts.Clock()); err != nil {
		return err
	}
	s.opts.Logger.InfoContext(ctx, "swept the objects", "objects", total.Objects, "rows", total.Rows, "gone", total.ForgottenObjects, "failed", total.Failed, "failed_shards", failedShards,
		"duration_ms", float64(s.opts.Clock().Sub(began).Microseconds())/1000)
	return nil
}

// sweepShard sweeps the current shard from the current position, and reports the counts of the
// documents that remain.
func (s *Sweeper) sweepShard(ctx context.Context, sweep repository.ObjectSweep, total *repository.SweptObjects) (repository.ObjectSweep, error) {
	for hasMore := true; hasMore; {
		page, err := s.store.Forget(ctx, sweep.Shard, sweep.After, sweptObjects)
		if err != nil {
			return sweep, fmt.Errorf("sweep shard %d of bucket %s: %w", sweep.Shard.Number, sweep.Shard.Bucket, err)
		}
		total.Objects += page.Objects
		total.Rows += page.Rows
		total.ForgottenObjects += page.ForgottenObjects
		total.Failed += page.Failed
		if page.Failure != nil {
			s.opts.Logger.ErrorContext(ctx, "objects are not swept", shardAttr(sweep.Shard), slog.Int("failed", page.Failed), slog.Any("error", page.Failure))
		}
		if hasMore = page.More; hasMore {
			sweep.After = page.After
			if sweep, err = s.store.MoveSweep(ctx, sweep, s.opts.Clock()); err != nil {
				return sweep, err
			}
		}
	}
	usage, err := s.store.Usage(ctx, sweep.Shard)
	if err != nil {
		return sweep, fmt.Errorf("count shard %d of bucket %s: %w", sweep.Shard.Number, sweep.Shard.Bucket, err)
	}
	s.report(sweep.Shard, usage)
	if usage.Bytes > ShardWarning {
		s.opts.Logger.WarnContext(ctx, "a shard of objects is more than 80 % full; set objects.retention, or delete objects, before it refuses events",
			shardAttr(sweep.Shard), slog.Int64("objects", usage.Objects), slog.Int64("rows", usage.Rows), slog.Int64("bytes", usage.Bytes))
	}
	return sweep, nil
}

func shardAttr(shard repository.ObjectShard) slog.Attr {
	return slog.Group("shard", "bucket", shard.Bucket, "number", shard.Number)
}

// compareShards orders shards like [repository.ObjectSweeper.Shards].
func compareShards(a, b repository.ObjectShard) int {
	return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Number, b.Number))
}
