package objects

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// crawlBucket runs a crawl of the bucket on a node, and returns the counts of the job.
func crawlBucket(t *testing.T, node *Store, source repository.Source) domain.JobCounts {
	t.Helper()
	service := ledger.New(ledger.Ports{Objects: node, Jobs: node, Source: source}, ledger.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		service.RunJobs(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	job, err := service.StartCrawl(ctx, "bucket", "")
	require.NoError(t, err)
	job, err = service.WaitForJob(ctx, job)
	require.NoError(t, err)
	require.Equal(t, domain.JobCompleted, job.State, job.Report)
	return job.Counts
}

func newSourceObject(key string) repository.SourceObject {
	size := int64(len(key))
	return repository.SourceObject{Key: key, ObjectFacts: domain.ObjectFacts{
		Size: &size, ETag: "0123456789abcdef0123456789abcdef", StorageClass: domain.ClassStandard, LastModified: objecttest.FirstMoment,
	}}
}

// TestCrawlOfUnchangedObjectsStaysWithinItsPrice measures the request units of a crawl for each object.
// Keys have 40 characters, and half of the objects were reported by events with the fields of S3.
func TestCrawlOfUnchangedObjectsStaysWithinItsPrice(t *testing.T) {
	const n, limit = 3000, 0.15 // limit in request units for each object
	a := accounttest.New(t, embedded.Options{}, Containers())
	node, source := New(a.Connect(), Options{}), memory.NewSource("bucket")
	var reports []repository.ObjectReport
	for i := range n {
		o := newSourceObject(fmt.Sprintf("%040d", i))
		source.Put("bucket", o)
		if i%2 > 0 {
			continue
		}
		e := objecttest.Calls("[C@10]")[0][0]
		e.Size, e.ETag = o.Size, domain.QuoteETag(o.ETag)
		reports = append(reports, repository.ObjectReport{Name: must(domain.ParseObjectName("bucket", o.Key)), ObjectEvent: e})
	}
	_, err := node.Ingest(t.Context(), reports)
	require.NoError(t, err)
	require.Equal(t, domain.JobCounts{Seen: n, Created: n / 2, Unchanged: n / 2}, crawlBucket(t, node, source))
	before, units := a.Engine.RequestUnits(), 0.0
	require.Equal(t, domain.JobCounts{Seen: n, Unchanged: n}, crawlBucket(t, node, source))
	units = (a.Engine.RequestUnits() - before) / n
	t.Logf("%.3f RU an object", units)
	require.LessOrEqual(t, units, limit)
}

// lockedDraws returns a function like rng.IntN that several goroutines may call.
func lockedDraws(rng *rand.Rand) func(n int) int {
	var mu sync.Mutex
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
}

// A crawl finds random differences between the bucket and the stored objects, while one of twelve
// requests fails or some reads are stale. In the end, the stored objects equal the bucket.
func TestCrawlsThroughFaultsAndStaleReads_EndInTheStateOfTheBucket(t *testing.T) {
	for _, isStale := range []bool{false, true} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(isStale, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					<-time.After(time.Until(objecttest.FirstMoment.Add(time.Hour)))
					rng := rand.New(rand.NewPCG(seed, 1))
					var isOld atomic.Bool
					draw := lockedDraws(rand.New(rand.NewPCG(seed, 2)))
					opts := embedded.Options{}
					if isStale {
						opts = embedded.Options{Consistency: "Session", Stale: func() int {
							if !isOld.Load() {
								return 0
							}
							return draw(4)
						}}
					}
					a := accounttest.New(t, opts, Containers())
					node, source := New(a.Connect(), Options{Shards: 3, Limits: domain.ObjectLimits{Rows: 2}, Retries: 1000}), memory.NewSource("bucket")
					exists := make(map[string]bool)
					for i := range 60 {
						key := fmt.Sprint(strings.Repeat("k", []int{1, 599, 600, 700}[rng.IntN(4)]), i)
						exists[key] = rng.IntN(3) > 0
						if exists[key] {
							source.Put("bucket", newSourceObject(key))
						}
						name := must(domain.ParseObjectName("bucket", key))
						for _, e := range objecttest.RandomBucket(rng, 6, false, time.Millisecond).Events {
							e.Version = domain.VersionID{}
							_, err := node.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: e}})
							require.NoError(t, err)
						}
					}
					isOld.Store(true)
					if !isStale {
						faults := faulty.CommonFaults()
						a.Transport.Break(func(int, *http.Request) faulty.Fault {
							if draw(12) > 0 {
								return faulty.None
							}
							return faults[draw(len(faults))]
						})
					}
					crawlBucket(t, node, source)
					isOld.Store(false)
					a.Transport.Break(nil)
					counts := crawlBucket(t, node, source)
					if !isStale { // a stale read may hide differences from the first crawl, and the second crawl finds them
						require.Zero(t, counts.Created+counts.Deleted)
					}
					for key, want := range exists {
						o, err := node.Object(t.Context(), must(domain.ParseObjectName("bucket", key)))
						if !want && domain.KindOf(err) == domain.NotFound {
							continue
						}
						require.NoError(t, err)
						require.Equal(t, want, o.Current != nil, "key of %d bytes", len(key))
					}
				})
			})
		}
	}
}

// All rows in the document of an object may be those of deleted versions. If the listing lacks the
// object, a crawl also deletes the live versions whose rows are stored outside the document.
func TestCrawlDeletesTheLiveVersionsOutsideTheDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Until(objecttest.FirstMoment.Add(time.Hour)))
		node, source := New(accounttest.New(t, embedded.Options{}, Containers()).Connect(), Options{Limits: domain.ObjectLimits{Rows: 2}}), memory.NewSource("bucket")
		name := must(domain.ParseObjectName("bucket", "key"))
		for _, e := range objecttest.Calls("[C@10/1, C@20/2, C@30/3, D@40/3]")[0] {
			_, err := node.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: e}})
			require.NoError(t, err)
		}
		o, err := node.Object(t.Context(), name)
		require.NoError(t, err)
		require.NotNil(t, o.Current)
		require.Equal(t, "C@30/3· D@40/3·", objecttest.Describe(o.Rows, o.Current), "the current row is outside the document")

		require.Equal(t, domain.JobCounts{Deleted: 2}, crawlBucket(t, node, source))
		o, err = node.Object(t.Context(), name)
		require.NoError(t, err)
		require.Nil(t, o.Current)
		require.Equal(t, domain.JobCounts{}, crawlBucket(t, node, source))
	})
}

// A stale read of the history of an object may not find the object, although the listing of the objects
// contained it. The crawl does not skip the object, but compares the page again.
func TestCrawlFindsADifference_IfAnyReadIsStale(t *testing.T) {
	for stale := int64(1); ; stale++ {
		var reads atomic.Int64
		synctest.Test(t, func(t *testing.T) {
			<-time.After(time.Until(objecttest.FirstMoment.Add(time.Hour)))
			var isCrawling atomic.Bool
			opts := embedded.Options{Stale: func() int {
				if isCrawling.Load() && reads.Add(1) == stale {
					return 100 // so long ago that the object did not exist
				}
				return 0
			}}
			node, source := New(accounttest.New(t, opts, Containers()).Connect(), Options{Limits: domain.ObjectLimits{Rows: 1}}), memory.NewSource("bucket")
			name := must(domain.ParseObjectName("bucket", "key"))
			for _, e := range objecttest.Calls("[C@10/1, C@20/2]")[0] {
				e.ETag = domain.QuoteETag("former")
				_, err := node.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: e}})
				require.NoError(t, err)
			}
			o, err := node.Object(t.Context(), name)
			require.NoError(t, err)
			require.True(t, o.HasVersionsOutside())
			source.Put("bucket", repository.SourceObject{Key: name.Key(), Version: o.Current.Version, ObjectFacts: domain.ObjectFacts{ETag: "new"}})

			isCrawling.Store(true)
			require.EqualValues(t, 1, crawlBucket(t, node, source).Created, "read %d is stale", stale)
			isCrawling.Store(false)
			o, err = node.Object(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, domain.QuoteETag("new"), o.Current.ETag)
		})
		if reads.Load() < stale {
			require.Greater(t, stale, int64(4))
			return
		}
	}
}
