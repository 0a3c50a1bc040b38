package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.ObjectLedger = (*Objects)(nil)

// A storedSweep is the last sweep that was begun.
type storedSweep struct {
	repository.ObjectSweep
	version      int
	began, moved time.Time
}

// NewObjectsWithRetention returns an empty Objects that removes rows according to keeping.
func NewObjectsWithRetention(keeping repository.ObjectKeeping) *Objects {
	s := NewObjects()
	s.keeping = keeping
	return s
}

// retentionHorizon returns the time up to which events are too old to create an object; zero without a
// retention.
func (s *Objects) retentionHorizon() time.Time {
	if s.keeping.Retention == 0 {
		return time.Time{}
	}
	return s.keeping.Retention.Horizon(s.keeping.Clock())
}

// Shards implements [repository.ObjectSweeper]. Each bucket has one shard.
func (s *Objects) Shards(ctx context.Context) ([]repository.ObjectShard, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list shards: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	buckets := make(map[string]struct{})
	for name := range s.objects {
		buckets[name.Bucket()] = struct{}{}
	}
	var shards []repository.ObjectShard
	for _, bucket := range slices.Sorted(maps.Keys(buckets)) {
		shards = append(shards, repository.ObjectShard{Bucket: bucket})
	}
	return shards, nil
}

// namesAfter returns the names of the objects of a bucket after a key, in order.
func (s *Objects) namesAfter(bucket, after string) (names []domain.ObjectName) {
	for name := range s.objects {
		if name.Bucket() == bucket && name.Key() > after {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, domain.CompareObjectNames)
	return names
}

// Forget implements [repository.ObjectSweeper].
func (s *Objects) Forget(ctx context.Context, shard repository.ObjectShard, after string, limit int) (page repository.SweptObjects, err error) {
	if err := ctx.Err(); err != nil {
		return page, fmt.Errorf("sweep objects: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.namesAfter(shard.Bucket, after)
	if len(names) > limit {
		names = names[:limit]
		page.More, page.After = true, names[limit-1].Key()
	}
	for _, name := range names {
		page.Objects++
		object := s.objects[name]
		u := object.Update(nil)
		if s.keeping.Retention > 0 {
			u.Forget(s.keeping.Retention, s.keeping.Clock(), domain.ObjectOrder{})
		}
		changes, queries := u.Finish(domain.ObjectLimits{})
		if len(queries) > 0 {
			panic("an object that spills nothing asks for spilled rows")
		}
		page.Rows += int(changes.Object.ForgottenRows - object.ForgottenRows)
		switch {
		case changes.IsGone:
			page.ForgottenObjects++
			delete(s.objects, name)
		case !changes.IsEmpty:
			s.objects[name] = &changes.Object
		}
	}
	return page, nil
}

// Usage implements [repository.ObjectSweeper].
func (s *Objects) Usage(ctx context.Context, shard repository.ObjectShard) (usage repository.ShardUsage, err error) {
	if err := ctx.Err(); err != nil {
		return usage, fmt.Errorf("count objects: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.namesAfter(shard.Bucket, "") {
		usage.Objects++
		usage.Bytes += int64(len(name.Key()))
		for _, r := range s.objects[name].Rows {
			usage.Bytes += int64(len(r.SequencerText()))
		}
	}
	return usage, nil
}

// TakeSweep implements [repository.ObjectSweeper].
func (s *Objects) TakeSweep(ctx context.Context, now time.Time, every, lease time.Duration) (sweep repository.ObjectSweep, isTaken bool, err error) {
	if err := ctx.Err(); err != nil {
		return sweep, false, fmt.Errorf("take sweep: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := &s.sweep
	switch {
	case last.version > 0 && !last.IsDone && now.Sub(last.moved).Abs() < lease:
		return sweep, false, nil
	case last.version > 0 && last.IsDone && now.Sub(last.began).Abs() < every:
		return sweep, false, nil
	case last.version == 0 || last.IsDone:
		last.ObjectSweep, last.began = repository.ObjectSweep{}, now
	}
	return last.moveSweep(now), true, nil
}

// MoveSweep implements [repository.ObjectSweeper].
func (s *Objects) MoveSweep(ctx context.Context, sweep repository.ObjectSweep, now time.Time) (repository.ObjectSweep, error) {
	if err := ctx.Err(); err != nil {
		return sweep, fmt.Errorf("move sweep: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sweep.Version != s.sweep.Version {
		return sweep, domain.Errorf(domain.Conflict, "another node sweeps")
	}
	s.sweep.ObjectSweep = sweep
	return s.sweep.moveSweep(now), nil
}

func (s *storedSweep) moveSweep(now time.Time) repository.ObjectSweep {
	s.version++
	s.moved, s.Version = now, repository.SweepVersion(strconv.Itoa(s.version))
	return s.ObjectSweep
}
