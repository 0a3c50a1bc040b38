package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func onBothStores(t *testing.T, test func(t *testing.T, c *azcosmos.ContainerClient)) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			_, c := openEngine(t, embedded.Options{Dir: dir})
			test(t, c)
		})
	}
}

func TestReplace_OneOfFiftyWritersWithOneEtagSucceeds(t *testing.T) {
	onBothStores(t, func(t *testing.T, c *azcosmos.ContainerClient) {
		createDocs(t, c, newDoc("counter", 0))
		for round := range 8 {
			read, err := c.ReadItem(t.Context(), pk, "counter", nil)
			require.NoError(t, err)
			var won, lost atomic.Int32
			var writers sync.WaitGroup
			for w := range 50 {
				writers.Go(func() {
					var answer azcosmos.ItemResponse
					var err error
					o := &azcosmos.ItemOptions{IfMatchEtag: &read.ETag}
					switch w % 3 {
					case 0:
						answer, err = c.ReplaceItem(context.Background(), pk, "counter", newDoc("counter", round+1), o)
					case 1:
						answer, err = c.UpsertItem(context.Background(), pk, newDoc("counter", round+1), o)
					case 2:
						answer, err = c.PatchItem(context.Background(), pk, "counter",
							patchOf(func(p *azcosmos.PatchOperations) { p.AppendIncrement("/n", 1) }), o)
					}
					switch clientStatus(t, answer.RawResponse, err) {
					case 200:
						won.Add(1)
					case 412:
						lost.Add(1)
					}
				})
			}
			writers.Wait()
			require.EqualValues(t, 1, won.Load())
			require.EqualValues(t, 49, lost.Load())
			require.Equal(t, [][]string{{fmt.Sprint(round + 1)}}, queryAll(t, c, pk, "SELECT VALUE c.n FROM c", nil))
		}
	})
}

func TestPatch_CountsEveryConfirmedIncrement(t *testing.T) {
	onBothStores(t, func(t *testing.T, c *azcosmos.ContainerClient) {
		createDocs(t, c, newDoc("counter", 0))
		var writers sync.WaitGroup
		for range 20 {
			writers.Go(func() {
				for {
					read, err := c.ReadItem(context.Background(), pk, "counter", nil)
					if !assert.NoError(t, err) {
						return
					}
					var d struct{ N int }
					if !assert.NoError(t, json.Unmarshal(read.Value, &d)) {
						return
					}
					answer, err := c.ReplaceItem(context.Background(), pk, "counter", newDoc("counter", d.N+1), &azcosmos.ItemOptions{IfMatchEtag: &read.ETag})
					if clientStatus(t, answer.RawResponse, err) == 200 {
						return
					}
				}
			})
		}
		writers.Wait()
		require.Equal(t, [][]string{{"20"}}, queryAll(t, c, pk, "SELECT VALUE c.n FROM c", nil))
	})
}

func TestBatch_IsVisibleOnlyAsAWhole(t *testing.T) {
	onBothStores(t, func(t *testing.T, c *azcosmos.ContainerClient) {
		const docs, generations = 10, 40
		put := func(generation int) {
			batch := c.NewTransactionalBatch(pk)
			for i := range docs {
				batch.UpsertItem(newDoc(fmt.Sprint(i), generation), nil)
			}
			answer, err := c.ExecuteTransactionalBatch(context.Background(), batch, nil)
			assert.NoError(t, err)
			assert.True(t, answer.Success)
		}
		put(0)
		var writing sync.WaitGroup
		done := make(chan struct{})
		writing.Go(func() {
			defer close(done)
			for g := range generations {
				put(g + 1)
			}
		})
		for writes := true; writes; {
			select {
			case <-done:
				writes = false
			default:
			}
			page := queryAll(t, c, pk, "SELECT VALUE c.n FROM c", nil)[0]
			require.Len(t, page, docs)
			for _, n := range page {
				require.Equal(t, page[0], n, "two generations on one page")
			}
		}
		writing.Wait()
	})
}

func TestBatch_ThatFailsChangesNothingAndNamesTheOperation(t *testing.T) {
	onBothStores(t, func(t *testing.T, c *azcosmos.ContainerClient) {
		createDocs(t, c, newDoc("a", 1))
		stale := azcosmosETag(`"x"`)
		for name, tc := range map[string]struct {
			fail func(b *azcosmos.TransactionalBatch)
			want int32
		}{
			"conflict":        {func(b *azcosmos.TransactionalBatch) { b.CreateItem(newDoc("a", 1), nil) }, 409},
			"missing":         {func(b *azcosmos.TransactionalBatch) { b.ReplaceItem("z", newDoc("z", 1), nil) }, 404},
			"missing to read": {func(b *azcosmos.TransactionalBatch) { b.ReadItem("z", nil) }, 404},
			"stale": {func(b *azcosmos.TransactionalBatch) {
				b.DeleteItem("a", &azcosmos.TransactionalBatchItemOptions{IfMatchETag: stale})
			}, 412},
			"false condition": {func(b *azcosmos.TransactionalBatch) {
				b.PatchItem("a", patchOf(func(p *azcosmos.PatchOperations) {
					p.AppendSet("/n", 2)
					p.SetCondition("from c where c.n > 1")
				}), nil)
			}, 412},
			"wrong partition": {func(b *azcosmos.TransactionalBatch) { b.CreateItem([]byte(`{"id":"q","pk":"q"}`), nil) }, 400},
		} {
			batch := c.NewTransactionalBatch(pk)
			batch.CreateItem(newDoc("new", 1), nil)
			batch.UpsertItem(newDoc("a", 99), nil)
			batch.PatchItem("a", patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/n", 1) }), nil)
			if name == "stale" {
				batch.ReplaceItem("new", newDoc("new", 2), nil)
			}
			tc.fail(&batch)
			batch.DeleteItem("new", nil)
			answer, err := c.ExecuteTransactionalBatch(t.Context(), batch, nil)
			require.NoError(t, err, name)
			require.False(t, answer.Success, name)
			require.Equal(t, 207, answer.RawResponse.StatusCode)
			failed := len(answer.OperationResults) - 2
			for i, r := range answer.OperationResults {
				want := int32(424)
				if i == failed {
					want = tc.want
				}
				require.Equal(t, want, r.StatusCode, "%s, operation %d", name, i)
			}
			require.Equal(t, [][]string{{`{"id":"a","n":1}`}}, queryAll(t, c, pk, "SELECT c.id, c.n FROM c", nil), name)
		}
		batch := c.NewTransactionalBatch(pk)
		for i := range 101 {
			batch.UpsertItem(newDoc(fmt.Sprint(i), i), nil)
		}
		_, err := c.ExecuteTransactionalBatch(t.Context(), batch, nil)
		require.Equal(t, 400, clientStatus(t, nil, err))
		require.ErrorContains(t, err, "more operations than what is supported")
	})
}

func TestWrite_WithACancelledContextIsAtomic(t *testing.T) {
	onBothStores(t, func(t *testing.T, c *azcosmos.ContainerClient) {
		for n := range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			batch := c.NewTransactionalBatch(pk)
			batch.CreateItem(newDoc(fmt.Sprint("x", n), n), nil)
			batch.CreateItem(newDoc(fmt.Sprint("y", n), n), nil)
			var writing sync.WaitGroup
			writing.Go(func() { _, _ = c.ExecuteTransactionalBatch(ctx, batch, nil) })
			cancel()
			writing.Wait()
		}
		ids := map[string]int{}
		for _, page := range queryAll(t, c, pk, "SELECT VALUE c.n FROM c", nil) {
			for _, n := range page {
				ids[n]++
			}
		}
		for n, count := range ids {
			require.Equal(t, 2, count, n)
		}
	})
}

func TestEngineInMemory_RunsInASynctestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := openEngine(t, embedded.Options{})
		createDocs(t, c, newDoc("a", 1))
		require.Equal(t, [][]string{{"1"}}, queryAll(t, c, pk, "SELECT VALUE c.n FROM c", nil))
	})
}
