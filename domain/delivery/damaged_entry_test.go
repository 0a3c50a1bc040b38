package delivery_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// damagedShards has in each shard an entry that cannot be read.
type damagedShards struct{ repository.Shards }

func (s damagedShards) Cursors(ctx context.Context, shard int) ([]repository.ShardEntry, []repository.WatchedStream, error) {
	entries, watched, err := s.Shards.Cursors(ctx, shard)
	if err == nil {
		err = domain.Errorf(domain.Damaged, "an entry of shard %d cannot be read", shard)
	}
	return entries, watched, err
}

func TestADamagedEntryOfAShard_StopsNoOtherCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
			s := openMemory(t, clock)
			s.Shards = damagedShards{s.Shards}
			return s
		})
		r := w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy()})
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 1)
		n.Stop()
		n = w.Start(delivery.Options{}) // the node finds the cursor when it reads the shard
		<-time.After(10 * time.Minute)
		w.Publish(n, 1)
		<-time.After(10 * time.Minute)
		n.Stop()
		require.Len(t, r.Taken(), 2)
	})
}
