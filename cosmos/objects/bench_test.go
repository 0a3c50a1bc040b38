package objects

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// BenchmarkPage reads pages of 100 objects at random positions of a bucket with 16 shards. The time of
// a page should not grow with the number of objects.
func BenchmarkPage(b *testing.B) {
	for _, objects := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			a := accounttest.New(b, embedded.Options{}, Containers())
			s := New(a.Connect(), Options{})
			ingestMany(b, s, objects)
			for _, anyOrder := range []bool{false, true} {
				b.Run(map[bool]string{false: "in order", true: "in any order"}[anyOrder], func(b *testing.B) {
					rng := rand.New(rand.NewPCG(1, 1))
					var took []time.Duration
					before := a.Engine.RequestUnits()
					for b.Loop() {
						r := repository.ObjectRange{Bucket: "bucket", OnlyCurrent: true, AnyOrder: anyOrder, After: benchKey(rng.IntN(objects * 9 / 10))}
						began := time.Now()
						page, err := s.List(b.Context(), r, 100)
						took = append(took, time.Since(began))
						require.NoError(b, err)
						require.True(b, anyOrder || len(page.Objects) == 100)
					}
					b.ReportMetric((a.Engine.RequestUnits()-before)/float64(b.N), "RU/op")
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
				})
			}
		})
	}
}

func benchKey(i int) string { return fmt.Sprintf("runs/%07d/sample.bam", i) }

// ingestMany stores an event for each of n objects.
func ingestMany(b *testing.B, s *Store, n int) {
	e := objecttest.Calls("[C@C1]")[0][0]
	e.ETag, e.StorageClass, e.Reason = `"0123456789abcdef0123456789abcdef"`, domain.ClassStandard, domain.CreatedPut
	reports := make([]repository.ObjectReport, 0, 1000)
	for i := range n {
		reports = append(reports, repository.ObjectReport{Name: must(domain.ParseObjectName("bucket", benchKey(i))), ObjectEvent: e})
		if len(reports) == cap(reports) || i == n-1 {
			results, err := s.Ingest(b.Context(), reports)
			require.NoError(b, err)
			require.NoError(b, results[0].Err)
			reports = reports[:0]
		}
	}
}
