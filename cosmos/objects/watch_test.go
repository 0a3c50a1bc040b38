package objects

import (
	"context"
	"testing"
	"time"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func (n *nodes) Observe(f func(domain.Change)) {
	for _, s := range n.all {
		s.Observe(f)
	}
}

func (n *nodes) MarkWatched(ctx context.Context, r domain.Resource, mayBeAbsent bool) (int64, error) {
	return n.node().MarkWatched(ctx, r, mayBeAbsent)
}

func (n *nodes) Changes(ctx context.Context, r domain.Resource) ([]domain.Change, error) {
	return n.node().Changes(ctx, r)
}

func (n *nodes) RemoveChange(ctx context.Context, c domain.Change) error {
	return n.node().RemoveChange(ctx, c)
}

func (n *nodes) Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error) {
	return n.node().Unpublished(ctx, before, limit)
}

func TestWatchesConformance(t *testing.T) {
	for name, opts := range map[string]Options{
		"Plain":           {Retries: 100},
		"ManySpilledRows": {Retries: 100, Shards: 1, Limits: domain.ObjectLimits{Rows: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accounttest.New(t, embedded.Options{}, Containers())
			repositorytest.RunObjectWatches(t, func(*testing.T) repositorytest.WatchedObjects {
				return &nodes{all: []*Store{New(a.Connect(), opts), New(a.Connect(), opts)}}
			})
		})
	}
}
