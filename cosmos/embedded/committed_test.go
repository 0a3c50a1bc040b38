package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// committedDoc is a document as these tests receive it in Options.Committed.
type committedDoc struct {
	ID   string `json:"id"`
	N    int    `json:"n"`
	ETag string `json:"_etag"`
}

// TestCommitted_IsCalledInTheOrderOfTheCommits patches the same documents from several goroutines. The callback takes
// no lock, so the race detector finds overlapping calls. Etags increase with every commit, so they reveal calls in the
// wrong order.
func TestCommitted_IsCalledInTheOrderOfTheCommits(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			const writers, patches, docs = 16, 25, 4
			var calls []committedDoc
			_, c := openEngine(t, embedded.Options{Dir: dir, Committed: func(changes []embedded.Change) {
				for _, change := range changes {
					var d committedDoc
					if err := json.Unmarshal(change.JSON, &d); err != nil {
						t.Error(err)
					}
					calls = append(calls, d)
				}
			}})
			for i := range docs {
				createDocs(t, c, newDoc(fmt.Sprint(i), 0))
			}
			var running sync.WaitGroup
			for w := range writers {
				running.Go(func() {
					for i := range patches {
						id := fmt.Sprint((w + i) % docs)
						patch := patchOf(func(p *azcosmos.PatchOperations) { p.AppendIncrement("/n", 1) })
						answer, err := c.PatchItem(context.Background(), pk, id, patch, &azcosmos.ItemOptions{EnableContentResponseOnWrite: true})
						if err != nil {
							t.Error(err)
							return
						}
						if answer.ETag == "" {
							t.Error("a patch without an etag")
						}
					}
				})
			}
			running.Wait()
			require.Len(t, calls, docs+writers*patches)
			n, etag := map[string]int{}, ""
			for _, d := range calls {
				require.Equal(t, n[d.ID], d.N, "document %s", d.ID)
				n[d.ID]++
				require.Greater(t, d.ETag, etag)
				etag = d.ETag
			}
		})
	}
}

// Committed is called for every committed write, even if the client disconnects before it gets the response.
func TestCommitted_IsCalledAfterClientsDisconnected(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	engine, c := openEngine(t, embedded.Options{Dir: t.TempDir(), Committed: func(changes []embedded.Change) {
		mu.Lock()
		defer mu.Unlock()
		for _, change := range changes {
			seen[change.ID] = true
		}
	}})
	var running sync.WaitGroup
	for i := range 60 {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*20)*time.Microsecond)
			defer cancel()
			_, _ = c.CreateItem(ctx, pk, newDoc(fmt.Sprint(i), i), nil) // the client may disconnect before or after the commit
		})
	}
	running.Wait()
	createDocs(t, c, newDoc("last", 0)) // writes are serial, so every earlier write has ended when this one returns
	mu.Lock()
	defer mu.Unlock()
	stored := map[string]bool{}
	for _, id := range queryAll(t, c, pk, "SELECT VALUE c.id FROM c", &azcosmos.QueryOptions{PageSizeHint: -1})[0] {
		var text string
		require.NoError(t, json.Unmarshal([]byte(id), &text))
		stored[text] = true
	}
	require.Equal(t, stored, seen)
	require.NotZero(t, engine.Requests())
}
