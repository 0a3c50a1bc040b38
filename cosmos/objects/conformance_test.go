package objects

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nodes distributes calls over several nodes, round robin.
type nodes struct {
	all  []*Store
	next atomic.Int64
}

func (n *nodes) node() *Store { return n.all[int(n.next.Add(1))%len(n.all)] }

func (n *nodes) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	return n.node().Ingest(ctx, reports)
}

func (n *nodes) Object(ctx context.Context, name domain.ObjectName) (domain.Object, error) {
	return n.node().Object(ctx, name)
}

func (n *nodes) History(ctx context.Context, name domain.ObjectName, below domain.ObjectOrder, limit int) ([]domain.ObjectRow, error) {
	return n.node().History(ctx, name, below, limit)
}

func (n *nodes) List(ctx context.Context, r repository.ObjectRange, limit int) (repository.ObjectPage, error) {
	return n.node().List(ctx, r, limit)
}

func (n *nodes) Row(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID) (domain.ObjectRow, error) {
	return n.node().Row(ctx, name, id)
}

func (n *nodes) Count(ctx context.Context, r repository.ObjectRange) (int64, error) {
	return n.node().Count(ctx, r)
}

func (n *nodes) Buckets(ctx context.Context) ([]string, error) { return n.node().Buckets(ctx) }

func (n *nodes) Amend(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID, change func(domain.ObjectFacts) (domain.ObjectFacts, error)) (domain.ObjectRow, error) {
	return n.node().Amend(ctx, name, id, change)
}

// runConformance runs the tests that every implementation of repository.Objects must pass, on two nodes
// of one account.
func runConformance(t *testing.T, opts Options, histories uint64) {
	t.Parallel()
	a := accounttest.New(t, embedded.Options{}, Containers())
	open := func(*testing.T) repository.Objects {
		return &nodes{all: []*Store{New(a.Connect(), opts), New(a.Connect(), opts)}}
	}
	repositorytest.RunObjects(t, open)
	repositorytest.RandomObjects(t, open, histories)
}

func TestConformance(t *testing.T) { runConformance(t, Options{Retries: 100}, 10) }

// The limit for the rows in an object is low, so most decisions depend on spilled rows. With
// MESSAGEHUB_EVERY_CASE=1, as in make campaign, the test tries 2,000 histories.
func TestConformanceWithManySpilledRows(t *testing.T) {
	histories := uint64(30)
	if triesEveryCase {
		histories = 2000
	}
	runConformance(t, Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 3}, Retries: 100}, histories)
}

func TestABucketKeepsItsNumberOfShards(t *testing.T) {
	a := accounttest.New(t, embedded.Options{}, Containers())
	first, second := New(a.Connect(), Options{Shards: 3}), New(a.Connect(), Options{Shards: 200})
	for _, s := range []*Store{first, second} {
		c := s.client.Begin("test")
		n, err := s.ensureShards(t.Context(), c, "bucket")
		require.NoError(t, err)
		require.Equal(t, 3, n)
		n, err = s.shardsOf(t.Context(), c, "another")
		require.NoError(t, err)
		require.Zero(t, n)
	}
}

func TestTheNumberOfShards_IsReadOnceByEachNode(t *testing.T) {
	a := accounttest.New(t, embedded.Options{}, Containers())
	first, second := New(a.Connect(), Options{}), New(a.Connect(), Options{})
	requests := func(s *Store, key string) int {
		before := a.Transport.Calls()
		results, err := s.Ingest(t.Context(), []repository.ObjectReport{{Name: must(domain.ParseObjectName("bucket", key)), ObjectEvent: objecttest.Calls("[C@01]")[0][0]}})
		require.NoError(t, err)
		require.NoError(t, results[0].Err)
		return a.Transport.Calls() - before
	}
	const event = 2 // number of requests for an event: one read and one batch
	require.Equal(t, event+2, requests(first, "a"), "they are read and created")
	require.Equal(t, event, requests(first, "b"))
	require.Equal(t, event+1, requests(second, "c"), "they are read")
	require.Equal(t, event, requests(second, "d"))
}
