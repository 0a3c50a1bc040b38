package ledger_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
)

// queryOf returns the parameters in the text of a URL query.
func queryOf(t *testing.T, text string) map[string][]string {
	t.Helper()
	values, err := url.ParseQuery(text)
	require.NoError(t, err)
	return values
}

// runPatch runs a patch job on one node, waits for its end, and returns the job.
func (w *world) runPatch(query, patch string) domain.Job {
	w.Helper()
	node := w.newNode()
	defer w.runNode(w.Context(), node)()
	job, err := node.StartPatch(w.Context(), queryOf(w.T, query), []byte(patch))
	require.NoError(w, err)
	return w.waitForEnd(node, job)
}

// attributesOf returns the attributes of an object's rows, the oldest first.
func (w *world) attributesOf(key string) (all []string) {
	w.Helper()
	o, err := w.objects.Object(w.Context(), w.name(key))
	require.NoError(w, err)
	for i := range o.Rows {
		all = append(all, o.Rows[i].Attributes)
	}
	return all
}

// reportWithAttributes ingests an event by which an object with attributes was created.
func (w *world) reportWithAttributes(key, attributes string) {
	w.Helper()
	e := script("[C@C1]")[0]
	e.Attributes = attributes
	w.report(key, e)
}

const addLane = `[{"op": "add", "path": "/lane", "value": 3}]`

func TestPatchJob_ChangesTheRowsThatMatch(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 250 {
			w.report(fmt.Sprintf("run7/%03d", i), script("[C@C1, C@C2]")...)
		}
		w.report("run8/0", script("[C@C1]")...)
		w.report("run7/dead", script("[C@C1, D@D1]")...)
		job := w.runPatch("bucket="+bucket+"&key=run7/*", addLane)
		require.Equal(t, domain.JobCompleted, job.State, job.Report)
		require.Equal(t, domain.JobCounts{Seen: 250, Changed: 250}, job.Counts)
		require.Equal(t, bucket, job.Bucket)
		for i := range 250 {
			require.Equal(t, []string{"", `{"lane":3}`}, w.attributesOf(fmt.Sprintf("run7/%03d", i)))
		}
		require.Equal(t, []string{""}, w.attributesOf("run8/0"))
		require.Equal(t, []string{"", ""}, w.attributesOf("run7/dead"))

		job = w.runPatch("key=run7/00*&key[]=x", addLane)
		require.Equal(t, domain.JobCounts{}, job.Counts, "no row matches both")
		require.Empty(t, job.Bucket)
		job = w.runPatch("key=run7/dead&currentState=false", addLane)
		require.Equal(t, domain.JobCounts{Seen: 2, Changed: 2}, job.Counts)
		require.Equal(t, []string{`{"lane":3}`, `{"lane":3}`}, w.attributesOf("run7/dead"))
		job = w.runPatch("key=run8/0", `{"ingestId": [{"op": "add", "path": "/", "value": "`+ingestID+`"}]}`)
		require.Equal(t, domain.JobCounts{Seen: 1, Changed: 1}, job.Counts)
		job = w.runPatch("ingestId="+ingestID, `{"ingestId": [{"op": "replace", "path": "/", "value": "`+ingestID+`"}]}`)
		require.Equal(t, domain.JobCounts{Seen: 1, Unchanged: 1}, job.Counts)
	})
}

// If the patch fails for a row, this row is not changed, and the remaining rows are patched (case
// FM-98 of the original system).
func TestPatchJob_CountsTheRowsThatItCannotChange(t *testing.T) {
	inWorld(t, func(w *world) {
		w.reportWithAttributes("a", `{"sample":"L1"}`)
		w.reportWithAttributes("b", `{"sample":"L2"}`)
		w.reportWithAttributes("c", `{"sample":"L1","lane":1}`)
		job := w.runPatch("key=*", `[{"op": "add", "path": "/x", "value": 1}, {"op": "test", "path": "/sample", "value": "L1"}, {"op": "add", "path": "/lane", "value": 3}]`)
		require.Equal(t, domain.JobCompleted, job.State, job.Report)
		require.Equal(t, domain.JobCounts{Seen: 3, Changed: 1, Refused: 2}, job.Counts)
		require.Equal(t, [][]string{{`{"sample":"L1","x":1,"lane":3}`}, {`{"sample":"L2"}`}, {`{"sample":"L1","lane":1}`}},
			[][]string{w.attributesOf("a"), w.attributesOf("b"), w.attributesOf("c")})
		reasons := make(map[string]string)
		for _, f := range job.Failures {
			id, err := ledger.ParseRowID(f.Object)
			require.NoError(t, err)
			reasons[id.Name.Key()] = f.Reason
		}
		require.Contains(t, reasons["b"], "/1: test fails")
		require.Contains(t, reasons["c"], "/2: there is a value at the path, which add does not replace")

		for i := range 150 {
			w.reportWithAttributes(fmt.Sprint("many/", i), `{"lane":1}`)
		}
		job = w.runPatch("key=many/*", addLane)
		require.Equal(t, domain.JobCounts{Seen: 150, Refused: 150}, job.Counts)
		require.Len(t, job.Failures, domain.MaxJobFailures)
		job = w.runPatch("key=a", `[{"op": "test", "path": "/lane", "value": 3}]`)
		require.Equal(t, domain.JobCounts{Seen: 1, Unchanged: 1}, job.Counts)
	})
}

func TestPatchJob_IsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, tc := range []struct{ query, patch, want string }{
			{"", addLane, "the query has no condition on the rows"},
			{"currentState=false", addLane, "the query has no condition on the rows"},
			{"limit=3&key=*", addLane, "unknown query parameter"},
			{"key=%5Ca", addLane, "a backslash may only precede"},
			{"key=%ff", addLane, "key: want UTF-8"},
			{"key=*", `[{"op": "remove", "path": "/a"}]`, "/0/op: want test, add or copy"},
			{"key=*", `{`, "want JSON"},
			{"key=*", ``, "want JSON"},
		} {
			_, err := w.newNode().StartPatch(t.Context(), queryOf(t, tc.query), []byte(tc.patch))
			require.Equal(t, domain.Invalid, domain.KindOf(err), "%+v", tc)
			require.ErrorContains(t, err, tc.want)
		}
		all, err := w.jobs.ListJobs(t.Context(), domain.JobID{Kind: domain.PatchJob}, 1)
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

// If the patch is applied twice to a row, the result differs from that of one application. The job
// must patch each row once, no matter at which write the node crashes.
func TestPatchJobIsResumedByAnotherNode_AndPatchesNoRowTwice(t *testing.T) {
	const n = 130
	for _, after := range []bool{false, true} {
		for at, crashed := 1, true; crashed; at += 1 + at/10 {
			inWorld(t, func(w *world) {
				for i := range n {
					w.reportWithAttributes(fmt.Sprint("key", i), `{"list":[]}`)
				}
				dying, crash := context.WithCancel(w.Context())
				c := &crasher{Objects: w.objects, Jobs: w.jobs, n: at, after: after, crash: crash}
				healthy := w.newNode()
				w.ports.Objects, w.ports.Jobs = c, c
				node := w.newNode()
				job, err := node.StartPatch(w.Context(), queryOf(t, "key=key*"), []byte(`[{"op": "add", "path": "/list/-", "value": 1}]`))
				require.NoError(t, err)
				stopFirst := w.runNode(dying, node)
				<-time.After(time.Second) // takes no real time in the synctest bubble
				defer w.runNode(w.Context(), healthy)()
				ended := w.waitForEnd(healthy, job)
				stopFirst()
				crash()
				crashed = c.n <= 0
				require.Equal(t, domain.JobCompleted, ended.State, ended.Report)
				require.Equal(t, domain.JobCounts{Seen: n, Changed: n}, ended.Counts, "call %d", at)
				for i := range n {
					require.Equal(t, []string{`{"list":[1]}`}, w.attributesOf(fmt.Sprint("key", i)), "call %d", at)
				}
			})
		}
	}
}

// In each seven amendments, a throttledObjects refuses one, and executes a second one without a
// reply.
type throttledObjects struct {
	repository.Objects
	calls atomic.Int64
}

func (o *throttledObjects) Amend(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID, change func(domain.ObjectFacts) (domain.ObjectFacts, error)) (domain.ObjectRow, error) {
	switch o.calls.Add(1) % 7 {
	case 0:
		return domain.ObjectRow{}, domain.Errorf(domain.Busy, "throttled")
	case 1:
		if _, err := o.Objects.Amend(ctx, name, id, change); err != nil {
			return domain.ObjectRow{}, err
		}
		return domain.ObjectRow{}, domain.Errorf(domain.Uncertain, "the reply is lost")
	default:
		return o.Objects.Amend(ctx, name, id, change)
	}
}

func TestPatchJob_RepeatsAStepThatFails(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 5 {
			w.reportWithAttributes(fmt.Sprint("key", i), `{"list":[]}`)
		}
		w.ports.Objects = &throttledObjects{Objects: w.objects}
		job := w.runPatch("key=key*", `[{"op": "add", "path": "/list/-", "value": 1}]`)
		require.Equal(t, domain.JobCompleted, job.State, job.Report)
		require.Equal(t, domain.JobCounts{Seen: 5, Changed: 5}, job.Counts)
		for i := range 5 {
			require.Equal(t, []string{`{"list":[1]}`}, w.attributesOf(fmt.Sprint("key", i)))
		}
	})
}

func TestPatchJob_ThatIsStoppedPatchesNoMore(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 300 {
			w.report(fmt.Sprintf("key%03d", i), script("[C@C1]")...)
		}
		node := w.newNode()
		job, err := node.StartPatch(w.Context(), queryOf(t, "key=*"), []byte(addLane))
		require.NoError(t, err)
		stopped, err := node.StopJob(w.Context(), job.ID)
		require.NoError(t, err)
		defer w.runNode(w.Context(), node)()
		<-time.After(time.Hour)
		require.Equal(t, domain.JobStopped, stopped.State)
		require.NotContains(t, strings.Join(w.attributesOf("key000"), ""), "lane")
	})
}

// If a crawl adds a row with the same content as a known row, it copies the attributes of that
// row. So it must also copy the ids of the patch jobs.
func TestPatchJob_IsRememberedByTheRowsThatKeepTheAttributes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.setListed("key", repository.SourceObject{ObjectFacts: domain.ObjectFacts{ETag: "e"}})
		w.completeCrawl()
		job := w.runPatch("key=key", addLane)
		<-time.After(time.Second)
		w.setListed("key", repository.SourceObject{ObjectFacts: domain.ObjectFacts{ETag: "e", StorageClass: domain.ClassGlacier}})
		w.completeCrawl()
		o, err := w.objects.Object(w.Context(), w.name("key"))
		require.NoError(t, err)
		require.Len(t, o.Rows, 2)
		require.Equal(t, `{"lane":3}`, o.Current.Attributes)
		require.True(t, o.Current.HasPatch(job.ID))
	})
}
