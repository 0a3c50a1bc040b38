package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A failingSweeper is a store that fails after some pages. Tests set the sizes of its shards.
type failingSweeper struct {
	repository.ObjectSweeper
	pages int // number of pages that succeed before one fails; negative: all pages succeed
	bytes int64
}

var errPage = errors.New("the node is killed")

func (s *failingSweeper) Forget(ctx context.Context, shard repository.ObjectShard, after string, limit int) (repository.SweptObjects, error) {
	if s.pages == 0 {
		s.pages--
		return repository.SweptObjects{}, errPage
	}
	s.pages--
	return s.ObjectSweeper.Forget(ctx, shard, after, limit)
}

func (s *failingSweeper) Usage(ctx context.Context, shard repository.ObjectShard) (repository.ShardUsage, error) {
	usage, err := s.ObjectSweeper.Usage(ctx, shard)
	usage.Bytes = s.bytes
	return usage, err
}

// fill stores n objects, each with one row that the sweep removes.
func fill(t *testing.T, store repository.Objects, bucket string, n int) {
	var reports []repository.ObjectReport
	for i := range n {
		name, err := domain.ParseObjectName(bucket, fmt.Sprintf("key%03d", i))
		require.NoError(t, err)
		for _, e := range objecttest.Calls("[C@1, C@2]")[0] {
			reports = append(reports, repository.ObjectReport{Name: name, ObjectEvent: e})
		}
	}
	_, err := store.Ingest(t.Context(), reports)
	require.NoError(t, err)
}

func sweepStore(now *time.Time) (*memory.Objects, ledger.Options) {
	clock := func() time.Time { return *now }
	return memory.NewObjectsWithRetention(repository.ObjectKeeping{Retention: domain.ObjectRetention(time.Hour), Clock: clock}), ledger.Options{Clock: clock}
}

// If a sweep fails at any page, another node resumes it at this page after the lease has expired.
func TestSweep_ResumesAtItsLastPosition(t *testing.T) {
	for failsAt := range 6 {
		now := objecttest.FirstMoment
		store, opts := sweepStore(&now)
		fill(t, store, "a", 250)
		fill(t, store, "b", 150)
		now = now.Add(2 * time.Hour)
		reported := make(map[string]int64)
		report := func(shard repository.ObjectShard, usage repository.ShardUsage) {
			reported[shard.Bucket] = usage.Objects
		}
		err := ledger.NewSweeper(&failingSweeper{store, failsAt, 0}, report, opts).Sweep(t.Context())
		if failsAt == 5 {
			require.NoError(t, err, "it has five pages")
		} else {
			require.ErrorIs(t, err, errPage)
		}
		second := &failingSweeper{store, -1, 0}
		sweeper := ledger.NewSweeper(second, report, opts)
		require.NoError(t, sweeper.Sweep(t.Context()))
		require.Equal(t, -1, second.pages, "the lease of the first node has not passed")
		now = now.Add(20 * time.Minute)
		require.NoError(t, sweeper.Sweep(t.Context()))
		require.Equal(t, -1-(5-failsAt), second.pages, "pages that were swept are not repeated")
		require.Equal(t, map[string]int64{"a": 250, "b": 150}, reported)
		for _, shard := range []string{"a", "b"} {
			page, err := store.Forget(t.Context(), repository.ObjectShard{Bucket: shard}, "", 1000)
			require.NoError(t, err)
			require.Zero(t, page.Rows, "nothing is left to forget")
		}
	}
}

// A brokenShard is a store whose shard in one bucket cannot be swept or counted.
type brokenShard struct {
	repository.ObjectSweeper
	bucket     string
	isCounting bool
}

func (s *brokenShard) Forget(ctx context.Context, shard repository.ObjectShard, after string, limit int) (repository.SweptObjects, error) {
	if shard.Bucket == s.bucket && !s.isCounting {
		return repository.SweptObjects{}, errPage
	}
	return s.ObjectSweeper.Forget(ctx, shard, after, limit)
}

func (s *brokenShard) Usage(ctx context.Context, shard repository.ObjectShard) (repository.ShardUsage, error) {
	if shard.Bucket == s.bucket && s.isCounting {
		return repository.ShardUsage{}, errPage
	}
	return s.ObjectSweeper.Usage(ctx, shard)
}

// A shard that fails twice in a row is skipped until the next sweep. The remaining shards are
// swept.
func TestSweep_SkipsAShardThatFailsTwice(t *testing.T) {
	for _, isCounting := range []bool{false, true} {
		now := objecttest.FirstMoment
		store, opts := sweepStore(&now)
		for _, bucket := range []string{"a", "b", "c"} {
			fill(t, store, bucket, 150)
		}
		now = now.Add(2 * time.Hour)
		var log bytes.Buffer
		opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		reported := make(map[string]int)
		report := func(shard repository.ObjectShard, _ repository.ShardUsage) { reported[shard.Bucket]++ }
		sweeper := ledger.NewSweeper(&brokenShard{store, "b", isCounting}, report, opts)
		require.ErrorIs(t, sweeper.Sweep(t.Context()), errPage)
		require.Equal(t, map[string]int{"a": 1}, reported)
		now = now.Add(20 * time.Minute)
		require.NoError(t, sweeper.Sweep(t.Context()))
		require.Equal(t, map[string]int{"a": 1, "c": 1}, reported)
		require.Contains(t, log.String(), "shard.bucket=b")
		require.Contains(t, log.String(), "failed_shards=1")
		page, err := store.Forget(t.Context(), repository.ObjectShard{Bucket: "c"}, "", 1000)
		require.NoError(t, err)
		require.Zero(t, page.Rows, "nothing is left to forget")
		now = now.Add(25 * time.Hour)
		require.NoError(t, sweeper.Sweep(t.Context()))
		require.Equal(t, map[string]int{"a": 2, "c": 2}, reported, "the sweep is complete, and the next one begins with the first shard")
	}
}

func TestSweep_WarnsOfAShardThatIsNearlyFull(t *testing.T) {
	for _, tc := range []struct {
		bytes int64
		want  bool
	}{{ledger.ShardWarning, false}, {ledger.ShardWarning + 1, true}} {
		now := objecttest.FirstMoment
		store, opts := sweepStore(&now)
		fill(t, store, "a", 1)
		var log bytes.Buffer
		opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		var got int64
		report := func(_ repository.ObjectShard, usage repository.ShardUsage) { got = usage.Bytes }
		require.NoError(t, ledger.NewSweeper(&failingSweeper{store, -1, tc.bytes}, report, opts).Sweep(t.Context()))
		require.Equal(t, tc.bytes, got)
		require.Equal(t, tc.want, bytes.Contains(log.Bytes(), []byte("80 % full")))
	}
}

func TestSweeperRunsUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := objecttest.FirstMoment
		store, opts := sweepStore(&now)
		fill(t, store, "a", 1)
		ctx, cancel := context.WithCancel(t.Context())
		swept, ended := make(chan struct{}, 1), make(chan struct{})
		report := func(repository.ObjectShard, repository.ShardUsage) { swept <- struct{}{} }
		go func() {
			defer close(ended)
			ledger.NewSweeper(store, report, opts).Run(ctx)
		}()
		<-swept
		cancel()
		<-ended
	})
}
