package objects

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A script contains Ingest calls for some objects of one shard, and the rows that the objects must have
// afterwards.
type script struct {
	calls [][]repository.ObjectReport
	names []domain.ObjectName
	want  []string
}

// newScript returns a script that delivers each event of some random histories twice, in random order.
func newScript(t *testing.T, seed uint64, objects, limit int, nulls bool) *script {
	s := &script{}
	rng := rand.New(rand.NewPCG(seed, seed))
	var all []repository.ObjectReport
	for i := range objects {
		name, err := domain.ParseObjectName("bucket", fmt.Sprint("key", i))
		require.NoError(t, err)
		s.names = append(s.names, name)
		for _, e := range objecttest.RandomBucket(rng, limit, nulls, time.Millisecond).Events {
			e.Carrier.Message += name.Key()
			all = append(all, repository.ObjectReport{Name: name, ObjectEvent: e})
		}
	}
	for range 2 {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		s.calls = slices.AppendSeq(s.calls, slices.Chunk(slices.Clone(all), 4))
	}
	oracle := memory.NewObjects()
	for _, call := range s.calls {
		_, err := oracle.Ingest(t.Context(), call)
		require.NoError(t, err)
	}
	s.want = s.describeObjects(t, oracle)
	return s
}

// describeObjects returns, for each object, its rows as text.
func (s *script) describeObjects(t *testing.T, o repository.Objects) (all []string) {
	for _, name := range s.names {
		object, err := o.Object(t.Context(), name)
		if domain.KindOf(err) == domain.NotFound {
			all = append(all, "none")
			continue
		}
		require.NoError(t, err)
		rows, err := o.History(t.Context(), name, domain.ObjectOrder{}, 1000)
		require.NoError(t, err)
		slices.Reverse(rows)
		require.EqualValues(t, len(rows), object.Events)
		all = append(all, objecttest.Describe(rows, object.Current))
	}
	return all
}

// run makes the calls until one fails, and returns the error.
func (s *script) run(ctx context.Context, o repository.Objects) error {
	for _, call := range s.calls {
		results, err := o.Ingest(ctx, call)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
	}
	return nil
}

// triesEveryCase makes tests try all cases instead of a selection. The command make campaign sets it.
var triesEveryCase = os.Getenv("MESSAGEHUB_EVERY_CASE") != ""

// A node crashes before or after one of its requests. Then another node receives all messages again,
// from the first, and stores the same rows as without the crash.
func TestANodeThatEndsAtAnyRequest_LosesNothing(t *testing.T) {
	step := 7
	if triesEveryCase {
		step = 1
	}
	counts := regexp.MustCompile(`([+·])\d+`)
	for _, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, 9, 3, 14, true)
				for n := 1; ; n += step {
					a := accounttest.New(t, embedded.Options{}, Containers())
					options := Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 2}}
					a.Transport.CrashAt(n, fault)
					err := s.run(t.Context(), New(a.Connect(), options))
					hasEnded := a.Transport.Fired() > 0
					a.Transport.Break(nil)
					require.Equal(t, hasEnded, err != nil, "request %d: %v", n, err)
					require.NoError(t, s.run(t.Context(), New(a.Connect(), options)), "request %d", n)
					got := s.describeObjects(t, New(a.Connect(), options))
					for i := range got {
						require.Equal(t, counts.ReplaceAllString(s.want[i], "$1"), counts.ReplaceAllString(got[i], "$1"), "request %d", n)
					}
					if !hasEnded {
						require.Greater(t, n, 20)
						return
					}
				}
			})
		})
	}
}

// Each request fails once with each fault, and Ingest sends it again. The second request does not count
// the events as duplicates.
func TestEveryRequestBrokenOnce_CountsNothingTwice(t *testing.T) {
	all := faulty.CommonFaults()
	if triesEveryCase {
		all = append(all, faulty.RareFaults()...)
	}
	for _, fault := range all {
		if fault == faulty.Forbidden {
			continue // a call does not retry a request that is refused with 403
		}
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // in simulated time, so that backoffs take no real time
				s := newScript(t, 5, 3, 14, true)
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, Containers())
					node := New(a.Connect(), Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 2}})
					a.Transport.BreakOne(n, fault)
					require.NoError(t, s.run(t.Context(), node), "request %d", n)
					broken := a.Transport.Calls() >= n
					a.Transport.Break(nil)
					require.Equal(t, s.want, s.describeObjects(t, node), "request %d", n)
					if !broken {
						require.Greater(t, n, 20)
						return
					}
				}
			})
		})
	}
}

// Some reads return an old state, as an account with session consistency may do. The stored rows are the
// same as with current reads.
func TestStaleReads_CostRetriesAndChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, seed))
			isOld := true
			a := accounttest.New(t, embedded.Options{Consistency: "Session", Stale: func() int {
				if !isOld || rng.IntN(2) == 0 {
					return 0
				}
				return rng.IntN(7)
			}}, Containers())
			s := newScript(t, seed, 3, 12, true)
			node := New(a.Connect(), Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 1 + int(seed%4)}, Retries: 1000})
			require.NoError(t, s.run(t.Context(), node), "seed %d", seed)
			isOld = false
			require.Equal(t, s.want, s.describeObjects(t, node), "seed %d", seed)
		}
	})
}

// Two nodes each receive all events, while one of twelve requests fails. Each event is counted as
// delivered twice.
func TestTwoNodesWithBrokenRequests_CountEachEventTwice(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := accounttest.New(t, embedded.Options{}, Containers())
				s := newScript(t, seed, 3, 12, false)
				faults, rng := faulty.CommonFaults(), rand.New(rand.NewPCG(seed, seed))
				a.Transport.Break(func(int, *http.Request) faulty.Fault {
					if rng.IntN(12) > 0 {
						return faulty.None
					}
					return faults[rng.IntN(len(faults))]
				})
				var nodes sync.WaitGroup
				for i := range 2 {
					half := *s
					half.calls = s.calls[i*len(s.calls)/2 : (i+1)*len(s.calls)/2]
					node := New(a.Connect(), Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 2}, Retries: 1000})
					nodes.Go(func() {
						if err := half.run(t.Context(), node); err != nil {
							t.Error(err)
						}
					})
				}
				nodes.Wait()
				a.Transport.Break(nil)
				require.Equal(t, s.want, s.describeObjects(t, New(a.Connect(), Options{})))
			})
		})
	}
}

// Every attempt to store a batch is refused, but the lost first attempt may have been stored. If the
// objects cannot be read, the outcome of their events is Uncertain.
func TestEventsOfABatchThatMayBeStored_AreUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := accounttest.New(t, embedded.Options{}, Containers())
		node := New(a.Connect(), Options{Shards: 1})
		writes := 0
		a.Transport.Break(func(_ int, req *http.Request) faulty.Fault {
			isBatch := req.Header.Get("x-ms-cosmos-is-batch-request") != ""
			if isBatch {
				writes++
			}
			switch {
			case isBatch && writes == 1:
				return faulty.RequestLost
			case isBatch:
				return faulty.ForeignPrecondition
			case writes > maxRefusals:
				return faulty.Forbidden
			}
			return faulty.None
		})
		var reports []repository.ObjectReport
		for _, key := range []string{"a", "b"} {
			reports = append(reports, repository.ObjectReport{Name: must(domain.ParseObjectName("bucket", key)), ObjectEvent: objecttest.Calls("[C@C1]")[0][0]})
		}
		results, err := node.Ingest(t.Context(), reports)
		require.NoError(t, err)
		for _, r := range results {
			require.Equal(t, domain.Uncertain, domain.KindOf(r.Err), r.Err)
		}
	})
}

// Another node changes one object faster than this node can write a batch of several objects. The changed
// object is stored separately, and the other objects in one batch.
func TestAnObjectForWhichABatchIsRefused_IsStoredSeparately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := accounttest.New(t, embedded.Options{}, Containers())
		node, other := New(a.Connect(), Options{Shards: 1}), New(a.ConnectBy(a.Engine.Transport()), Options{Shards: 1})
		report := func(key string, n int) repository.ObjectReport {
			return repository.ObjectReport{Name: must(domain.ParseObjectName("bucket", key)), ObjectEvent: objecttest.Calls(fmt.Sprintf("[C@%04X]", n))[0][0]}
		}
		keys := []string{"a", "b", "c", "hot", "x", "y"}
		for _, key := range keys {
			_, err := other.Ingest(t.Context(), []repository.ObjectReport{report(key, 1)})
			require.NoError(t, err)
		}
		n := 1
		var batches []int
		a.Transport.Break(func(_ int, req *http.Request) faulty.Fault {
			if req.Header.Get("x-ms-cosmos-is-batch-request") == "" {
				return faulty.None
			}
			body, err := io.ReadAll(req.Body)
			require.NoError(t, err)
			req.Body = io.NopCloser(bytes.NewReader(body))
			batches = append(batches, bytes.Count(body, []byte(`"kind":"object"`)))
			if batches[len(batches)-1] == len(keys) {
				n++
				_, err := other.Ingest(t.Context(), []repository.ObjectReport{report("hot", n)})
				require.NoError(t, err)
			}
			return faulty.None
		})
		var reports []repository.ObjectReport
		for _, key := range keys {
			reports = append(reports, report(key, 100))
		}
		results, err := node.Ingest(t.Context(), reports)
		require.NoError(t, err)
		for _, r := range results {
			require.NoError(t, r.Err)
			require.Equal(t, domain.ObjectStored, r.Outcome)
		}
		require.Equal(t, []int{6, 6, 6, 6, 5, 1}, batches)
	})
}
