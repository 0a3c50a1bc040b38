package embedded_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// onlySlot makes a container index only /slot.
func onlySlot(p *azcosmos.ContainerProperties) {
	p.IndexingPolicy = &azcosmos.IndexingPolicy{
		Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent,
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/slot/?"}},
		ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/*"}},
	}
}

// largeDoc returns a document of 64 KB, most of it one base64 string.
func largeDoc(id string, slot int, partition string) []byte {
	random := make([]byte, 48<<10)
	_, _ = rand.Read(random)
	return fmt.Appendf(nil, `{"id":%q,"pk":%q,"slot":%d,"data":%q}`, id, partition, slot, base64.StdEncoding.EncodeToString(random))
}

func reportRU(b *testing.B, engine *embedded.Engine, before float64) {
	b.ReportMetric((engine.RequestUnits()-before)/float64(b.N), "RU/op")
}

func eachStore(b *testing.B, run func(b *testing.B, dir string)) {
	b.Run("disk", func(b *testing.B) { run(b, b.TempDir()) })
	b.Run("memory", func(b *testing.B) { run(b, "") })
}

func BenchmarkBatchOfEight64KB(b *testing.B) {
	eachStore(b, func(b *testing.B, dir string) {
		engine, c := openEngine(b, embedded.Options{Dir: dir}, onlySlot)
		var writer atomic.Int64
		bodies := make([][]byte, 8)
		for i := range bodies {
			bodies[i] = largeDoc("ID######", i, "PP####")
		}
		b.SetBytes(8 * int64(len(bodies[0])))
		before := engine.RequestUnits()
		b.SetParallelism(4)
		b.RunParallel(func(p *testing.PB) {
			partition := fmt.Sprintf("%06d", writer.Add(1))
			key := azcosmos.NewPartitionKeyString(partition)
			for n := 0; p.Next(); n++ {
				batch := c.NewTransactionalBatch(key)
				for i, body := range bodies {
					body = bytes.Replace(body, []byte("PP####"), []byte(partition), 1)
					batch.CreateItem(bytes.Replace(body, []byte("ID######"), fmt.Appendf(nil, "%08d", n*8+i), 1), nil)
				}
				answer, err := c.ExecuteTransactionalBatch(context.Background(), batch, nil)
				if err != nil || !answer.Success {
					b.Errorf("batch: %v, success %v", err, answer.Success)
					return
				}
			}
		})
		reportRU(b, engine, before)
	})
}

func BenchmarkQueryPageOf4MB(b *testing.B) {
	eachStore(b, func(b *testing.B, dir string) {
		engine, c := openEngine(b, embedded.Options{Dir: dir}, onlySlot)
		for i := range 63 {
			createDocs(b, c, largeDoc(fmt.Sprint(i), i, "p"))
		}
		before := engine.RequestUnits()
		var size int64
		transport := engine.Transport()
		request := queryRequest(b, engine, `SELECT * FROM c WHERE c.slot >= @from ORDER BY c.slot`, `[{"name":"@from","value":0}]`)
		for b.Loop() {
			answer, err := transport.Do(request())
			require.NoError(b, err)
			require.Equal(b, 200, answer.StatusCode)
			size = answer.ContentLength
		}
		b.SetBytes(size)
		reportRU(b, engine, before)
	})
}

func BenchmarkPointRead(b *testing.B) {
	eachStore(b, func(b *testing.B, dir string) {
		engine, c := openEngine(b, embedded.Options{Dir: dir})
		createDocs(b, c, newDoc("a", 1))
		b.Run("client", func(b *testing.B) {
			before := engine.RequestUnits()
			for b.Loop() {
				_, err := c.ReadItem(context.Background(), pk, "a", nil)
				require.NoError(b, err)
			}
			reportRU(b, engine, before)
		})
		b.Run("transport", func(b *testing.B) {
			request := readRequest(b, engine)
			transport := engine.Transport()
			for b.Loop() {
				answer, err := transport.Do(request)
				if err != nil || answer.StatusCode != 200 {
					b.Fatal(err, answer)
				}
			}
		})
	})
}

func BenchmarkConditionalReplace(b *testing.B) {
	eachStore(b, func(b *testing.B, dir string) {
		engine, c := openEngine(b, embedded.Options{Dir: dir}, onlySlot)
		createDocs(b, c, newDoc("a", 1))
		read, err := c.ReadItem(b.Context(), pk, "a", nil)
		require.NoError(b, err)
		etag := read.ETag
		before := engine.RequestUnits()
		for b.Loop() {
			answer, err := c.ReplaceItem(context.Background(), pk, "a", newDoc("a", 2), &azcosmos.ItemOptions{IfMatchEtag: &etag})
			require.NoError(b, err)
			etag = answer.ETag
		}
		reportRU(b, engine, before)
	})
}

func BenchmarkPatch(b *testing.B) {
	eachStore(b, func(b *testing.B, dir string) {
		engine, c := openEngine(b, embedded.Options{Dir: dir}, onlySlot)
		createDocs(b, c, newDoc("a", 1))
		before := engine.RequestUnits()
		for b.Loop() {
			patch := azcosmos.PatchOperations{}
			patch.AppendIncrement("/n", 1)
			_, err := c.PatchItem(context.Background(), pk, "a", patch, nil)
			require.NoError(b, err)
		}
		reportRU(b, engine, before)
	})
}

func BenchmarkQueryAmong10000(b *testing.B) {
	eachStore(b, func(b *testing.B, dir string) {
		engine, c := openEngine(b, embedded.Options{Dir: dir}, onlySlot)
		for i := 0; i < 10_000; i += 100 {
			batch := c.NewTransactionalBatch(pk)
			for j := i; j < i+100; j++ {
				batch.CreateItem(fmt.Appendf(nil, `{"id":"%06d","pk":"p","slot":%d,"payload":"0123456789012345678901234567890123456789"}`, j, j), nil)
			}
			_, err := c.ExecuteTransactionalBatch(b.Context(), batch, nil)
			require.NoError(b, err)
		}
		before := engine.RequestUnits()
		for b.Loop() {
			pages := queryAll(b, c, pk, "SELECT * FROM c WHERE c.slot > 5000 ORDER BY c.slot OFFSET 0 LIMIT 10", nil)
			require.Len(b, pages[0], 10)
		}
		reportRU(b, engine, before)
	})
}

func BenchmarkConditionalReplaceBy16Writers(b *testing.B) {
	eachStore(b, func(b *testing.B, dir string) {
		engine, c := openEngine(b, embedded.Options{Dir: dir}, onlySlot)
		var writer atomic.Int64
		before := engine.RequestUnits()
		b.SetParallelism(8)
		b.RunParallel(func(p *testing.PB) {
			id := fmt.Sprint(writer.Add(1))
			answer, err := c.CreateItem(context.Background(), pk, newDoc(id, 0), nil)
			for n := 0; err == nil && p.Next(); n++ {
				etag := answer.ETag
				answer, err = c.ReplaceItem(context.Background(), pk, id, newDoc(id, n), &azcosmos.ItemOptions{IfMatchEtag: &etag})
			}
			if err != nil {
				b.Error(err)
			}
		})
		reportRU(b, engine, before)
	})
}
