package repositorytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// A sweepFixture is an objectFixture whose store removes rows after a retention, and the clock of the
// store.
type sweepFixture struct {
	*objectFixture
	repository.ObjectSweeper
	clock *sweepClock
}

type sweepClock struct{ micros atomic.Int64 }

func (c *sweepClock) readTime() time.Time     { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *sweepClock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// sweepRetention is the retention of the store of a sweepFixture.
const sweepRetention = 3 * 24 * time.Hour

type sweepRule struct {
	name string
	test func(f *sweepFixture)
}

// RunObjectSweeps checks an implementation against the contract of repository.ObjectSweeper. Its stores are
// empty when they are opened.
func RunObjectSweeps(t *testing.T, open func(t *testing.T, keeping repository.ObjectKeeping) repository.ObjectLedger) {
	for _, r := range sweepRules {
		t.Run(r.name, func(t *testing.T) { r.test(newSweepFixture(t, open)) })
	}
}

func newSweepFixture(t *testing.T, open func(t *testing.T, keeping repository.ObjectKeeping) repository.ObjectLedger) *sweepFixture {
	clock := &sweepClock{}
	clock.micros.Store(objecttest.FirstMoment.UnixMicro())
	store := open(t, repository.ObjectKeeping{Retention: domain.ObjectRetention(sweepRetention), Clock: clock.readTime})
	plain := newObjectFixture(t, func(*testing.T) repository.Objects { return store })
	return &sweepFixture{plain, store, clock}
}

// sweepObjects sweeps all shards in pages, and returns the sums of the results.
func (f *sweepFixture) sweepObjects(limit int) (total repository.SweptObjects) {
	f.Helper()
	total, err := sweepAll(f.ctx, f.ObjectSweeper, limit)
	require.NoError(f, err)
	require.NoError(f, total.Failure)
	return total
}

func sweepAll(ctx context.Context, s repository.ObjectSweeper, limit int) (total repository.SweptObjects, err error) {
	shards, err := s.Shards(ctx)
	if err != nil {
		return total, err
	}
	for _, shard := range shards {
		for page := (repository.SweptObjects{More: true}); page.More; {
			if page, err = s.Forget(ctx, shard, page.After, limit); err != nil {
				return total, err
			}
			total.Objects += page.Objects
			total.Rows += page.Rows
			total.ForgottenObjects += page.ForgottenObjects
			if total.Failure == nil {
				total.Failure = page.Failure
			}
		}
	}
	return total, nil
}

// inDays returns the events of a script. Each second in the script means a day.
func inDays(script string) (events []domain.ObjectEvent) {
	for _, e := range slices.Concat(objecttest.Calls(script)...) {
		e.Time = objecttest.FirstMoment.Add(e.Time.Sub(objecttest.FirstMoment) * time.Duration(24*time.Hour/time.Second))
		events = append(events, e)
	}
	return events
}

var sweepRules = []sweepRule{
	{"OldRowsAreForgotten_AndStayForgotten", func(f *sweepFixture) {
		events := inDays("[C@1+0, C@2+1, C@3+2, C@-+1]")
		f.ingestReports(f.toReports(events...)...)
		f.clock.advance(5 * 24 * time.Hour)
		f.clock.advance(time.Second)
		total := f.sweepObjects(10)
		require.Equal(f, repository.SweptObjects{Objects: 1, Rows: 3}, total)
		require.Equal(f, "C@3+", f.describeRows())
		late, duplicate := domain.ObjectTooOld, domain.ObjectDuplicate
		require.Equal(f, []domain.ObjectOutcome{late, late, duplicate, late}, f.ingestReports(f.toReports(events...)...))
		require.Equal(f, "C@3+1", f.describeRows())
		require.EqualValues(f, 3, f.readObject().ForgottenRows)
	}},
	{"ADeadObjectIsForgottenWhole_AndItsOldEventsStoreNothing", func(f *sweepFixture) {
		events := inDays("[C@1+0, D@2+1]")
		f.ingestReports(f.toReports(events...)...)
		f.clock.advance(14 * 24 * time.Hour)
		require.Equal(f, 1, f.sweepObjects(10).Rows)
		require.Equal(f, "D@2·", f.describeRows())
		f.clock.advance(2 * 24 * time.Hour)
		require.Equal(f, 1, f.sweepObjects(10).ForgottenObjects)
		late := domain.ObjectTooOld
		for range 2 {
			require.Equal(f, []domain.ObjectOutcome{late, late, late}, f.ingestReports(f.toReports(events[0], events[1], events[0])...))
			_, err := f.Object(f.ctx, f.name)
			require.Equal(f, domain.NotFound, domain.KindOf(err))
		}
		fresh := objecttest.Calls("[C@3]")[0][0]
		fresh.Time = f.clock.readTime()
		f.ingestReports(f.toReports(events[0], fresh)...)
		require.Equal(f, "C@3+", f.describeRows())
		require.Equal(f, []domain.ObjectOutcome{late}, f.ingestReports(f.toReports(events[0])...))
	}},
	{"NothingIsForgottenBeforeItsTime", func(f *sweepFixture) {
		f.ingestReports(f.toReports(inDays("[C@1+0, C@2+1]")...)...)
		f.clock.advance(sweepRetention)
		require.Equal(f, repository.SweptObjects{Objects: 1}, f.sweepObjects(10))
	}},
	{"APageEndsAtItsLimit_AndTheNextOneContinues", func(f *sweepFixture) {
		const n = 23
		for i := range n {
			f.name = f.objectName(fmt.Sprint("key", i))
			f.ingestReports(f.toReports(inDays("[C@1+0, C@2+1]")...)...)
		}
		f.clock.advance(2 * sweepRetention)
		require.Equal(f, repository.SweptObjects{Objects: n, Rows: n}, f.sweepObjects(3))
		require.Zero(f, f.sweepObjects(100).Rows)
	}},
	{"ManyRowsOfOneObjectAreForgotten", func(f *sweepFixture) {
		const n = 120
		for i := range n {
			f.ingestReports(f.toReports(inDays(fmt.Sprintf("[C@%04X/v%d+0, D@%04X/v%d+1]", 2*i+1, i%70, 2*i+2, i%70))...)...)
		}
		fresh := objecttest.Calls("[C@FFFF/last]")[0][0]
		fresh.Time = objecttest.FirstMoment.Add(30 * 24 * time.Hour)
		f.ingestReports(f.toReports(fresh)...)
		f.clock.advance(10 * 24 * time.Hour)
		require.Equal(f, 2*n-70, f.sweepObjects(10).Rows, "each version has its last row")
		require.Len(f, f.readHistory(), 70+1)
		f.clock.advance(10 * 24 * time.Hour)
		require.Equal(f, 70, f.sweepObjects(10).Rows)
		require.Equal(f, "C@FFFF/last+", f.describeRows())
	}},
	{"TwoSweepersAndTwoIngestersRemoveTheSameRowsAsOne", func(f *sweepFixture) {
		rng := rand.New(rand.NewPCG(7, 8))
		for try := range 4 {
			f.name = f.objectName(fmt.Sprint("race", try))
			events := inDays("[C@1/a+0, C@2/b+1, D@3/a+1, C@4/c+2, M@5/m+2, D@6/m+3, C@-/c+3, C@7/b+3, D@8/c+4, C@9/b+4]")
			f.ingestReports(f.toReports(events...)...)
			f.clock.advance(5 * 24 * time.Hour)
			orders := [][]int{rng.Perm(len(events)), rng.Perm(len(events))}
			f.runTogether(4, func(i int) {
				if i < 2 {
					f.deliverInOrder(events, orders[i])
				} else if _, err := sweepAll(f.ctx, f.ObjectSweeper, 2); err != nil {
					f.Error(err)
				}
			})
			f.sweepObjects(10)
			rows := f.readHistory()
			f.ingestReports(f.toReports(events...)...)
			require.Equal(f, len(rows), len(f.readHistory()), "nothing comes back")
			f.clock.micros.Store(objecttest.FirstMoment.UnixMicro())
		}
	}},
	{"AShardIsCounted", func(f *sweepFixture) {
		for i := range 40 {
			f.name = f.objectName(fmt.Sprint("key", i))
			f.ingestScript("[C@1]")
		}
		shards, err := f.Shards(f.ctx)
		require.NoError(f, err)
		var total repository.ShardUsage
		for _, shard := range shards {
			usage, err := f.Usage(f.ctx, shard)
			require.NoError(f, err)
			require.Equal(f, usage.Objects > 0, usage.Bytes > 0)
			total.Objects += usage.Objects
		}
		require.EqualValues(f, 40, total.Objects)
	}},
	{"OneNodeSweeps_AndAnotherTakesOverAfterTheLease", func(f *sweepFixture) {
		const every, lease = 24 * time.Hour, 10 * time.Minute
		now := objecttest.FirstMoment
		sweep, isTaken, err := f.TakeSweep(f.ctx, now, every, lease)
		require.NoError(f, err)
		require.True(f, isTaken)
		require.Zero(f, sweep.Shard)
		_, isTaken, err = f.TakeSweep(f.ctx, now.Add(lease-time.Second), every, lease)
		require.NoError(f, err)
		require.False(f, isTaken, "the other node sweeps")
		sweep.Shard, sweep.After = repository.ObjectShard{Bucket: f.bucket, Number: 2}, "key"
		sweep, err = f.MoveSweep(f.ctx, sweep, now.Add(lease/2))
		require.NoError(f, err)

		second, isTaken, err := f.TakeSweep(f.ctx, now.Add(2*lease), every, lease)
		require.NoError(f, err)
		require.True(f, isTaken)
		require.Equal(f, sweep.Shard, second.Shard)
		require.Equal(f, "key", second.After)
		_, err = f.MoveSweep(f.ctx, sweep, now.Add(2*lease))
		require.Equal(f, domain.Conflict, domain.KindOf(err), "it was taken over")

		second.IsDone = true
		_, err = f.MoveSweep(f.ctx, second, now.Add(2*lease))
		require.NoError(f, err)
		_, isTaken, err = f.TakeSweep(f.ctx, now.Add(every-time.Second), every, lease)
		require.NoError(f, err)
		require.False(f, isTaken)
		next, isTaken, err := f.TakeSweep(f.ctx, now.Add(every), every, lease)
		require.NoError(f, err)
		require.True(f, isTaken)
		require.Zero(f, next.Shard)
		require.Empty(f, next.After)
	}},
	{"ACallWhoseContextHasEndedFails", func(f *sweepFixture) {
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := f.Shards(ended)
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.Forget(ended, repository.ObjectShard{Bucket: f.bucket}, "", 1)
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.Usage(ended, repository.ObjectShard{Bucket: f.bucket})
		require.ErrorIs(f, err, context.Canceled)
		_, _, err = f.TakeSweep(ended, f.clock.readTime(), time.Hour, time.Hour)
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.MoveSweep(ended, repository.ObjectSweep{}, f.clock.readTime())
		require.ErrorIs(f, err, context.Canceled)
	}},
}
