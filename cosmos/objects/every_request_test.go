package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
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

// A protocol is an operation that a node repeats after a failure, and that always leads to the same
// documents.
type protocol struct {
	name      string
	retention bool // whether the store has a retention, after which sweeps remove rows
	prepare   func(*trial)
	run       func(*trial, *Store) error
}

// protocols are the tested protocols. Ingests have separate tests.
var protocols = []protocol{
	{name: "crawl", prepare: prepareCrawl, run: runCrawl},
	{name: "patch", prepare: preparePatch, run: runPatch},
	{name: "patch job", prepare: preparePatch, run: runPatchJob},
	{name: "forget", retention: true, prepare: prepareForget, run: runForget},
}

// A trial runs a protocol once, with faults.
type trial struct {
	*testing.T
	protocol
	account *accounttest.Account
	watcher *Store // node whose requests never fail
	source  *memory.Source
	clock   setClock // clock of a store that has a retention
	sweeps  time.Duration

	hasCrashed func() bool
}

// newTrial prepares a protocol in an account.
func newTrial(t *testing.T, p protocol, opts embedded.Options) *trial {
	<-time.After(time.Until(objecttest.FirstMoment.Add(time.Hour))) // the wait takes no real time, because trials run in simulated time
	r := &trial{
		T: t, protocol: p, account: accounttest.New(t, opts, Containers()), source: memory.NewSource("bucket"),
		clock: setClock{sweptAt}, hasCrashed: func() bool { return false },
	}
	r.watcher = r.node(r.account.Engine.Transport())
	p.prepare(r)
	return r
}

// node returns a node that sends its requests over line. An object stores up to two rows in its
// document, so most decisions depend on spilled rows.
func (r *trial) node(line policy.Transporter) *Store {
	options := Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 2}}
	if r.retention {
		k := r.clock.keeping()
		options.Retention, options.Clock = k.Retention, k.Clock
	}
	return New(r.account.ConnectBy(line), options)
}

// ingestScript stores each event of a script for a key.
func (r *trial) ingestScript(key, script string) {
	for _, call := range objecttest.Calls(script) {
		call[0].Carrier.Message += key
		results, err := r.watcher.Ingest(r.Context(), []repository.ObjectReport{{Name: must(domain.ParseObjectName("bucket", key)), ObjectEvent: call[0]}})
		require.NoError(r, err)
		require.NoError(r, results[0].Err)
	}
}

// prepareCrawl fills a bucket and the ledger so that they differ in every possible way. A crawl reads the
// bucket in three pages.
func prepareCrawl(r *trial) {
	r.ingestScript("a", "[C@10]")
	r.ingestScript("b", "[C@10/1] [C@20/2] [D@30/2] [C@40/3]") // version 1 is spilled
	r.ingestScript("c", "[C@10] [D@20]")
	r.ingestScript("e", "[C@10] [C@20] [D@30] [C@40]")
	r.ingestScript("f", "[C@10]")
	for _, key := range []string{"a", "c", "d", "g"} {
		r.source.Put("bucket", repository.SourceObject{Key: key})
	}
	r.source.Put("bucket", newSourceObject("e"))
}

var (
	errNotEnded = errors.New("the job has not ended")
	errCrashed  = errors.New("the node has crashed")
)

// runCrawl crawls the bucket, or waits for a running crawl.
func runCrawl(r *trial, node *Store) error {
	return r.runJob(node, func(s *ledger.Service) (domain.Job, error) {
		job, err := s.StartCrawl(r.Context(), "bucket", "")
		if runs, is := errors.AsType[*repository.JobRunsError](err); is {
			job.ID, err = runs.ID, nil
		}
		return job, err
	})
}

// runPatchJob runs a job that changes all rows of an object. A repeated job has nothing to change.
func runPatchJob(r *trial, node *Store) error {
	return r.runJob(node, func(s *ledger.Service) (domain.Job, error) {
		query := map[string][]string{"bucket": {"bucket"}, "key": {"key"}, "currentState": {"false"}}
		return s.StartPatch(r.Context(), query, []byte(`[{"op":"add","path":"/a","value":1}]`))
	})
}

// runJob starts a job, and returns when no job is running. A crashed node may have started another job,
// which must end, too.
func (r *trial) runJob(node *Store, start func(*ledger.Service) (domain.Job, error)) error {
	ports := ledger.Ports{Objects: node, Jobs: node, Source: r.source}
	job, err := start(ledger.New(ports, ledger.Options{}))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ledger.New(ports, ledger.Options{CrawlPage: 2, JSONPatch: applyPatch}).RunJobs(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	for range 600 {
		<-time.After(time.Second)
		if r.hasCrashed() {
			return errCrashed
		}
		running, err := r.watcher.RunningJobs(ctx)
		if err != nil {
			return err
		}
		if len(running) > 0 {
			continue
		}
		switch found, err := r.watcher.Job(ctx, job.ID); {
		case err != nil:
			return err
		case found.State != domain.JobCompleted:
			return fmt.Errorf("the job is %s: %s", found.State, found.Report)
		}
		return nil
	}
	return errNotEnded
}

func preparePatch(r *trial) { r.ingestScript("key", "[C@01/old] [C@02/v] [D@03/v] [C@04/w] [D@05/w]") }

// runPatch amends the current row and one other row.
func runPatch(r *trial, node *Store) error {
	other := objecttest.Calls("[C@04/w]")[0][0]
	for _, id := range []domain.ObjectRowID{{}, other.ID()} {
		_, err := node.Amend(r.Context(), must(domain.ParseObjectName("bucket", "key")), id, func(f domain.ObjectFacts) (domain.ObjectFacts, error) {
			f.Attributes = `{"a":1}`
			return f, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// prepareForget creates an object with many spilled rows, an object without a row that can be forgotten,
// and an object whose rows are all forgotten.
func prepareForget(r *trial) {
	r.ingestScript("many", "[C@10/1+1] [C@20/2+2] [C@-/2+2] [C@30/2+3] [D@40/1+3] [C@50/2+3] [C@60/2+4]")
	r.ingestScript("new", "[C@10]")
	r.ingestScript("dead", "[C@10+1] [C@20+1] [C@30+1] [D@40+2]")
	r.clock.after = 15 * 24 * time.Hour
}

// runForget sweeps all shards. It first advances the clock, so that a sweep is due and no other node has
// the lease.
func runForget(r *trial, node *Store) error {
	r.sweeps += 25 * time.Hour
	now := func() time.Time { return objecttest.FirstMoment.Add(r.sweeps) }
	if err := ledger.NewSweeper(node, func(repository.ObjectShard, repository.ShardUsage) {}, ledger.Options{Clock: now}).Sweep(r.Context()); err != nil {
		return err
	}
	var sweep sweepDoc
	_, err := r.watcher.client.Begin("test").Read(r.Context(), r.watcher.objects, sweepKey, sweepID, &sweep)
	if err == nil && !sweep.Done {
		return errNotEnded
	}
	return err
}

// finish runs the protocol on a node, and repeats it after each failure until it succeeds. After a crash,
// finish uses a node whose requests are not broken.
func (r *trial) finish() {
	r.Helper()
	var err error
	for range 5 {
		if err = r.run(r, r.node(r.account.Transport)); err == nil {
			return
		}
		if r.hasCrashed() {
			r.account.Transport.Break(nil)
			r.hasCrashed = func() bool { return false }
		}
	}
	require.NoError(r, err)
}

// volatile lists the members of documents that differ between two runs, such as ids of writes, times,
// and the members that the engine adds.
var volatile = []string{
	"_etag", "_rid", "_self", "_ts", "_attachments", "writes", "writeId", "time", "micros", "order", "spilledTo",
	"message", "began", "moved", "after", "patches",
}

// listDocuments returns the stored documents, without volatile members and without jobs. The counts of a
// job depend on the requests of a node before its crash.
func (r *trial) listDocuments() (all []string) {
	r.Helper()
	q := r.watcher.client.Begin("test").QueryAllPartitions(r.watcher.objects, "", "SELECT * FROM c")
	for !q.IsDone() {
		items, err := q.Next(context.Background(), 1000)
		require.NoError(r, err)
		for _, item := range items {
			var d map[string]any
			require.NoError(r, json.Unmarshal(item, &d))
			switch d["kind"] {
			case "job":
				require.Equal(r, "completed", d["state"])
				continue
			case "row":
				delete(d, "id") // the id is a hash of volatile members
			}
			text, err := json.Marshal(removeVolatile(d))
			require.NoError(r, err)
			all = append(all, string(text))
		}
	}
	slices.Sort(all)
	return all
}

func removeVolatile(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range volatile {
			delete(v, name)
		}
		for name := range v {
			v[name] = removeVolatile(v[name])
		}
	case []any:
		for i := range v {
			v[i] = removeVolatile(v[i])
		}
	}
	return v
}

// runWithoutFaults returns the documents that a protocol stores without faults, and the number of its
// requests.
func runWithoutFaults(t *testing.T, p protocol) (documents []string, requests int) {
	r := newTrial(t, p, embedded.Options{})
	r.account.Transport.Break(nil)
	before := r.listDocuments()
	r.account.Transport.Break(nil)
	r.finish()
	requests = r.account.Transport.Calls()
	documents = r.listDocuments()
	require.NotEqual(t, before, documents)
	require.NoError(t, r.run(r, r.watcher))
	require.Equal(t, documents, r.listDocuments(), "to repeat it changes nothing")
	return documents, requests
}

// requestsToBreak returns the numbers of the requests to break: all with MESSAGEHUB_EVERY_CASE, otherwise
// a selection that differs between faults.
func requestsToBreak(requests, fault int) (all []int) {
	step := 5
	if triesEveryCase {
		step = 1
	}
	for n := 1 + fault%step; n <= requests; n += step {
		all = append(all, n)
	}
	return all
}

// Each request fails once with each fault, and failed calls are repeated. The stored documents are the
// same as without faults.
func TestEveryFaultAtEveryRequest_EndsInTheStateWithoutFaults(t *testing.T) {
	faults := slices.Concat(faulty.CommonFaults(), faulty.RareFaults())
	faults = slices.DeleteFunc(faults, func(f faulty.Fault) bool { return f == faulty.Forbidden }) // no call retries a request that is refused with 403
	for _, p := range protocols {
		for i, fault := range faults {
			t.Run(p.name+"/"+fault.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { // in simulated time, so that backoffs take no real time
					want, requests := runWithoutFaults(t, p)
					for _, n := range requestsToBreak(requests, i) {
						r := newTrial(t, p, embedded.Options{})
						r.account.Transport.BreakOne(n, fault)
						r.finish()
						r.account.Transport.Break(nil)
						require.Equal(t, want, r.listDocuments(), "request %d", n)
					}
				})
			})
		}
	}
}

// A node crashes before or after one of its requests, and another node continues the job or repeats the
// call. The stored documents are the same as without the crash.
func TestACrashAtEveryRequest_EndsInTheStateWithoutFaults(t *testing.T) {
	for _, p := range protocols {
		for i, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
			t.Run(p.name+"/"+fault.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					want, requests := runWithoutFaults(t, p)
					for _, n := range requestsToBreak(requests, i) {
						r := newTrial(t, p, embedded.Options{})
						r.account.Transport.CrashAt(n, fault)
						r.hasCrashed = func() bool { return r.account.Transport.Fired() > 0 }
						r.finish()
						require.Equal(t, want, r.listDocuments(), "request %d", n)
					}
				})
			})
		}
	}
}

// In each run, one read returns a state that is some commits old. The objects are the same as with
// current reads.
func TestAStaleReadAtEveryRequest_ChangesNoState(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var reads, oldRead, age atomic.Int64
				opts := embedded.Options{Consistency: "Session", Stale: func() int {
					if n := reads.Add(1); n == oldRead.Load() {
						return int(age.Load())
					}
					return 0
				}}
				// The protocol runs twice: the second crawl finds differences that a stale read has hidden
				// from the first crawl.
				state := func(n, commits int) []string {
					oldRead.Store(0)
					r := newTrial(t, p, opts)
					reads.Store(0)
					age.Store(int64(commits))
					oldRead.Store(int64(n))
					r.finish()
					requests := int(reads.Load())
					oldRead.Store(0)
					require.NoError(t, r.run(r, r.watcher))
					reads.Store(int64(requests))
					return r.describeStates()
				}
				want := state(0, 0)
				last := int(reads.Load())
				for commits := 1; commits <= 4; commits++ {
					for _, n := range requestsToBreak(last, commits) {
						require.Equal(t, want, state(n, commits), "read %d, %d commits old", n, commits)
					}
				}
			})
		})
	}
}

// describeStates returns the rows of each object, without duplicates, and the running jobs.
func (r *trial) describeStates() (all []string) {
	r.Helper()
	page, err := r.watcher.List(context.Background(), repository.ObjectRange{Bucket: "bucket"}, 100)
	require.NoError(r, err)
	for i := range page.Objects {
		o := &page.Objects[i]
		rows, err := r.watcher.History(context.Background(), o.Name, domain.ObjectOrder{}, 100)
		require.NoError(r, err)
		slices.Reverse(rows)
		text := o.Name.Key() + ": "
		for k := range rows {
			rows[k].Duplicates = 0
			text += rows[k].Attributes
		}
		all = append(all, text+objecttest.Describe(rows, o.Current))
	}
	running, err := r.watcher.RunningJobs(context.Background())
	require.NoError(r, err)
	require.Empty(r, running)
	return all
}
