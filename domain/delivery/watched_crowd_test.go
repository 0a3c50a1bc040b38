package delivery_test

import (
	"context"
	"encoding/binary"
	"net/http"
	"sync"
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

// visitedPages counts the pages that were read and are not marked as served.
type visitedPages struct {
	repository.Shards
	mu      sync.Mutex
	visited map[int]bool // by shard
	peak    int          // maximum number of visited pages
}

func (v *visitedPages) WatchPage(ctx context.Context, shard int, stream domain.StreamName, page int) (repository.WatchPage, error) {
	found, err := v.Shards.WatchPage(ctx, shard, stream, page)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil {
		v.visited[shard] = true
		v.peak = max(v.peak, len(v.visited))
	}
	return found, err
}

func (v *visitedPages) MarkServed(ctx context.Context, shard int, stream domain.StreamName, page int, version repository.WatchPageVersion, served int64) error {
	v.mu.Lock()
	delete(v.visited, shard)
	v.mu.Unlock()
	return v.Shards.MarkServed(ctx, shard, stream, page, version, served)
}

// takePeak returns the peak since the last call, and the current number of visited pages.
func (v *visitedPages) takePeak() (peak, now int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	peak, v.peak = v.peak, 0
	return peak, len(v.visited)
}

// This is rule P16.
func TestPagesWithManyWatches_AreVisitedUpTo16AtATime(t *testing.T) {
	const shards, watches = 24, 64
	synctest.Test(t, func(t *testing.T) {
		pages := &visitedPages{visited: make(map[int]bool)}
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
			s := openMemory(t, clock)
			pages.Shards = s.Shards
			s.Shards = pages
			return s
		})
		node := w.Start(delivery.Options{})
		owner, err := domain.ParseActorID("watcher")
		require.NoError(t, err)
		var all []*deliverytest.Receiver
		var random [10]byte
		for added := [shards]int{}; len(all) < shards*watches; {
			binary.BigEndian.PutUint64(random[:], binary.BigEndian.Uint64(random[:])+1)
			id := domain.NewWatchID(w.Clock.Now(), random).Cursor(owner)
			if shard := repository.ShardOf(id); shard < shards && added[shard] < watches {
				added[shard]++
				all = append(all, w.Add(&deliverytest.Receiver{
					ID: id, Policy: domain.WatchPolicy(time.Hour, 5), Answer: deliverytest.After(100*time.Millisecond, http.StatusOK),
				}))
			}
		}
		for n := range 2 { // in the first round, the engine knows no page
			w.Publish(node, 1)
			<-time.After(time.Minute)
			for _, r := range all {
				require.Len(t, r.Calls(), n+1)
			}
			peak, now := pages.takePeak()
			require.Zero(t, now)
			if n > 0 {
				require.Equal(t, 16, peak)
			}
		}
		node.Stop()
	})
}
