package embedded_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// pages is the number of pages that are read; benchmarks report the median.
const pages = 51

// reportPage reports the median time to read a result page, in microseconds.
func reportPage(b *testing.B, engine *embedded.Engine, name, query string, results int, partition string) {
	b.Helper()
	request := queryRequest(b, engine, query, "[]", "x-ms-documentdb-partitionkey", partition, "x-ms-max-item-count", "100",
		"x-ms-documentdb-query-enablecrosspartition", "true")
	var took []time.Duration
	for range pages {
		began := time.Now()
		answer := requireAnswered(b, engine, request())
		took = append(took, time.Since(began))
		require.Equal(b, fmt.Sprint(results), answer.Header.Get("x-ms-item-count"), query)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "µs-"+name)
}

// BenchmarkOrderedPage reads a page of 100 documents, ordered by id, from the middle of logical partitions of different
// sizes.
func BenchmarkOrderedPage(b *testing.B) {
	for b.Loop() {
		engine, _ := openEngine(b, embedded.Options{Dir: b.TempDir(), Unsynced: true}, onlySlot)
		have := 0
		for _, documents := range []int{1000, 10_000, 100_000, 1_000_000} {
			for ; have < documents; have += 100 {
				requireAnswered(b, engine, createRequest(b, engine, hundredDocs(have, 0), 0))
			}
			middle, size := documents/2, fmt.Sprintf("%dk", documents/1000)
			const inW00 = `["w00"]`
			reportPage(b, engine, "ascending-"+size, fmt.Sprintf("SELECT * FROM c WHERE c.id > '%08d' ORDER BY c.id", middle), 100, inW00)
			reportPage(b, engine, "descending-"+size, fmt.Sprintf("SELECT * FROM c WHERE c.id < '%08d' ORDER BY c.id DESC", middle), 100, inW00)
			reportPage(b, engine, "range-"+size, fmt.Sprintf("SELECT * FROM c WHERE c.id >= '%08d' AND c.id < '%08d'", middle, middle+100), 100, inW00)
			reportPage(b, engine, "tail-"+size, fmt.Sprintf("SELECT * FROM c WHERE c.id >= '%08d'", documents-100), 100, inW00)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPageAcrossPartitions reads a page from different numbers of logical partitions. Ten of the partitions
// contain a matching document.
func BenchmarkPageAcrossPartitions(b *testing.B) {
	for b.Loop() {
		engine, _ := openEngine(b, embedded.Options{Dir: b.TempDir(), Unsynced: true})
		create := func(id string, partition int) {
			answer, err := engine.Transport().Do(signedRequest(b, engine, "POST", docsPath, "docs", containerLink, fmt.Sprintf(`{"id":%q,"pk":"p%06d","n":1}`, id, partition),
				"x-ms-documentdb-partitionkey", fmt.Sprintf(`["p%06d"]`, partition)))
			if err != nil || answer.StatusCode != 201 {
				b.Error(err, answer)
			}
		}
		have := 0
		for _, partitions := range []int{1000, 10_000, 100_000} {
			first := have
			timeWriters(partitions-first, func(_, i int) {
				create("entry", first+i)
				if partitions == 1000 && i%100 == 0 {
					create("head", i)
				}
			})
			have = partitions
			size := fmt.Sprintf("%dk", partitions/1000)
			reportPage(b, engine, "by-id-"+size, "SELECT c.pk FROM c WHERE c.id = 'head'", 10, "")
			reportPage(b, engine, "by-partitions-"+size, "SELECT c.pk FROM c WHERE c.pk IN ('p000100', 'p000200') AND c.id != 'entry'", 2, "")
		}
	}
	b.ReportMetric(0, "ns/op")
}
