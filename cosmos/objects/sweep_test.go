package objects

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// runSweepConformance runs the tests that every implementation of repository.ObjectSweeper must pass, on
// two nodes of one account.
func runSweepConformance(t *testing.T, opts Options) {
	t.Parallel()
	repositorytest.RunObjectSweeps(t, func(t *testing.T, keeping repository.ObjectKeeping) repository.ObjectLedger {
		opts := opts
		opts.Retention, opts.Clock = keeping.Retention, keeping.Clock
		a := accounttest.New(t, embedded.Options{}, Containers())
		return &nodes{all: []*Store{New(a.Connect(), opts), New(a.Connect(), opts)}}
	})
}

func TestSweepConformance(t *testing.T) { runSweepConformance(t, Options{Retries: 100}) }

func TestSweepConformanceWithManySpilledRows(t *testing.T) {
	runSweepConformance(t, Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 3}, Retries: 100})
}

func (n *nodes) Shards(ctx context.Context) ([]repository.ObjectShard, error) {
	return n.node().Shards(ctx)
}

func (n *nodes) Forget(ctx context.Context, shard repository.ObjectShard, after string, limit int) (repository.SweptObjects, error) {
	return n.node().Forget(ctx, shard, after, limit)
}

func (n *nodes) Usage(ctx context.Context, shard repository.ObjectShard) (repository.ShardUsage, error) {
	return n.node().Usage(ctx, shard)
}

func (n *nodes) TakeSweep(ctx context.Context, now time.Time, every, lease time.Duration) (repository.ObjectSweep, bool, error) {
	return n.node().TakeSweep(ctx, now, every, lease)
}

func (n *nodes) MoveSweep(ctx context.Context, sweep repository.ObjectSweep, now time.Time) (repository.ObjectSweep, error) {
	return n.node().MoveSweep(ctx, sweep, now)
}

const (
	testRetention = 2 * time.Second // short, because the histories of objecttest span some seconds
	sweptAt       = 7 * time.Second
)

// sweepAll sweeps all shards.
func sweepAll(ctx context.Context, s repository.ObjectSweeper) error {
	shards, err := s.Shards(ctx)
	if err != nil {
		return err
	}
	for _, shard := range shards {
		for page := (repository.SweptObjects{More: true}); page.More; {
			if page, err = s.Forget(ctx, shard, page.After, 2); err != nil {
				return err
			}
			if page.Failure != nil {
				return page.Failure
			}
		}
	}
	return nil
}

// A setClock returns the time that a test sets. after is the duration since objecttest.FirstMoment.
type setClock struct{ after time.Duration }

func (c *setClock) keeping() repository.ObjectKeeping {
	return repository.ObjectKeeping{
		Retention: domain.ObjectRetention(testRetention), Clock: func() time.Time { return objecttest.FirstMoment.Add(c.after) },
	}
}

// sweepOracle returns the rows that remain in the in-memory store after a script and a sweep at the time
// at.
func sweepOracle(t *testing.T, s *script, at time.Duration) []string {
	clock := &setClock{sweptAt}
	oracle := memory.NewObjectsWithRetention(clock.keeping())
	require.NoError(t, s.run(t.Context(), oracle))
	clock.after = at
	require.NoError(t, sweepAll(t.Context(), oracle))
	return s.describeObjects(t, oracle)
}

// Each request of a sweep fails once with each fault. The sweep removes the same rows as the in-memory
// store.
func TestEveryRequestOfASweepBrokenOnce_RemovesTheSameRows(t *testing.T) {
	for _, at := range []time.Duration{sweptAt, 15 * 24 * time.Hour} {
		for _, fault := range faulty.CommonFaults() {
			t.Run(fmt.Sprint(at, fault), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { // in simulated time, so that backoffs take no real time
					s := newScript(t, 5, 3, 20, true)
					want := sweepOracle(t, s, at)
					require.NotEqual(t, s.want, want)
					for n := 1; ; n++ {
						a := accounttest.New(t, embedded.Options{}, Containers())
						clock := &setClock{sweptAt}
						k := clock.keeping()
						node := New(a.Connect(), Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 2}, Retention: k.Retention, Clock: k.Clock})
						require.NoError(t, s.run(t.Context(), node))
						clock.after = at
						a.Transport.BreakOne(n, fault)
						require.NoError(t, sweepAll(t.Context(), node), "request %d", n)
						broken := a.Transport.Calls() >= n
						a.Transport.Break(nil)
						require.Equal(t, want, s.describeObjects(t, node), "request %d", n)
						if !broken {
							require.Greater(t, n, 8)
							return
						}
					}
				})
			})
		}
	}
}

// Some reads of a sweep return an old state, as is possible with session consistency. After the next sweep,
// the same rows are removed as in the in-memory store.
func TestASweepWithStaleReads_RemovesTheSameRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, seed))
			isOld := false
			a := accounttest.New(t, embedded.Options{Consistency: "Session", Stale: func() int {
				if !isOld || rng.IntN(4) > 0 {
					return 0
				}
				return rng.IntN(7)
			}}, Containers())
			s := newScript(t, seed, 3, 16, true)
			k := (&setClock{sweptAt}).keeping()
			node := New(a.Connect(), Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 1 + int(seed%4)}, Retries: 1000, Retention: k.Retention, Clock: k.Clock})
			require.NoError(t, s.run(t.Context(), node), "seed %d", seed)
			isOld = true
			require.NoError(t, sweepAll(t.Context(), node), "seed %d", seed)
			require.NoError(t, s.run(t.Context(), node), "seed %d", seed)
			isOld = false
			require.NoError(t, sweepAll(t.Context(), node), "seed %d", seed)
			oracle := memory.NewObjectsWithRetention(k)
			for range 2 {
				require.NoError(t, s.run(t.Context(), oracle))
				require.NoError(t, sweepAll(t.Context(), oracle))
			}
			require.Equal(t, s.describeObjects(t, oracle), s.describeObjects(t, node), "seed %d", seed)
		}
	})
}

// TestASweepStaysWithinItsPrice measures the request units of a sweep for each row that it forgets.
func TestASweepStaysWithinItsPrice(t *testing.T) {
	a := accounttest.New(t, embedded.Options{}, Containers())
	now := objecttest.FirstMoment
	s := New(a.Connect(), Options{Shards: 1, Retention: domain.ObjectRetention(time.Hour), Clock: func() time.Time { return now }})
	name := func(key string) domain.ObjectName {
		return must(domain.ParseObjectName("bucket", fmt.Sprintf("%40s", key)))
	}
	ingest := func(key, script string) {
		for _, call := range objecttest.Calls(script) {
			_, err := s.Ingest(t.Context(), []repository.ObjectReport{{Name: name(key), ObjectEvent: call[0]}})
			require.NoError(t, err)
		}
	}
	sweep := func(what string, n int, limit float64) {
		before := a.Engine.RequestUnits()
		require.NoError(t, sweepAll(t.Context(), s))
		price := (a.Engine.RequestUnits() - before) / float64(n)
		t.Logf("%s: %.1f RU", what, price)
		require.LessOrEqual(t, price, limit, what)
	}
	for i := range 40 {
		ingest(fmt.Sprint("k", i), "[C@1] [C@2]")
	}
	sweep("an object with nothing to forget", 40, 4)
	now = now.Add(2 * time.Hour)
	sweep("an object with a row to forget", 40, 20)
	for i := range 200 {
		ingest("hot", fmt.Sprintf("[C@%04X+9000]", i+16))
	}
	now = now.Add(5 * time.Hour)
	sweep("a row of a hot key", 199, 16)
}

func TestTheRetentionOfABucket_AppliesOnlyToTheBucket(t *testing.T) {
	clock := objecttest.FirstMoment
	node := New(accounttest.New(t, embedded.Options{}, Containers()).Connect(), Options{
		Shards: 1, Clock: func() time.Time { return clock },
		Retentions: map[string]domain.ObjectRetention{"own": domain.ObjectRetention(time.Hour)},
	})
	ingest := func(bucket string) {
		name := must(domain.ParseObjectName(bucket, "key"))
		for _, call := range objecttest.Calls("[C@01] [D@02]") {
			_, err := node.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: call[0]}})
			require.NoError(t, err)
		}
	}
	ingest("own")
	ingest("other")
	clock = clock.Add(15 * 24 * time.Hour)
	require.NoError(t, sweepAll(t.Context(), node))
	_, err := node.Object(t.Context(), must(domain.ParseObjectName("own", "key")))
	require.Equal(t, domain.NotFound, domain.KindOf(err), "%v", err)
	other, err := node.Object(t.Context(), must(domain.ParseObjectName("other", "key")))
	require.NoError(t, err)
	require.Len(t, other.Rows, 2)

	results, err := node.Ingest(t.Context(), []repository.ObjectReport{{Name: must(domain.ParseObjectName("own", "key")), ObjectEvent: objecttest.Calls("[C@01]")[0][0]}})
	require.NoError(t, err)
	require.Equal(t, domain.ObjectTooOld, results[0].Outcome)
}
