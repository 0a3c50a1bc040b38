package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bucket = "bucket"

// A world contains a store with one bucket, and the objects that the hub knows.
type world struct {
	*testing.T
	objects *memory.Objects
	jobs    *memory.Jobs
	source  *memory.Source
	ports   ledger.Ports // ports for new nodes; a test may replace them
	page    int          // maximum number of objects on a page of a crawl
	events  int          // number of reported events

	hasClock bool // the times of the store's events come from the hub's clock
}

// inWorld runs a test in a synctest bubble, where waiting takes no real time.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, objects: memory.NewObjects(), jobs: memory.NewJobs(), source: memory.NewSource(bucket, "another")}
		w.ports = ledger.Ports{Objects: w.objects, Jobs: w.jobs, Source: w.source}
		<-time.After(time.Until(objecttest.FirstMoment.Add(time.Hour))) // advance the clock, so that the events of scripts are in the past
		test(w)
	})
}

// newNode returns the Service of a new node.
func (w *world) newNode() *ledger.Service {
	return ledger.New(w.ports, ledger.Options{CrawlPage: w.page, JSONPatch: applyPatch, HasClock: func(b string) bool { return w.hasClock && b == bucket }})
}

// runNode runs a node's jobs until stop is called, ctx ends or the test ends.
func (w *world) runNode(ctx context.Context, node *ledger.Service) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		node.RunJobs(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// crawl runs a crawl of the bucket on one node, waits for its end, and returns the job.
func (w *world) crawl(prefix string) domain.Job {
	w.Helper()
	node := w.newNode()
	defer w.runNode(w.Context(), node)()
	job, err := node.StartCrawl(w.Context(), bucket, prefix)
	require.NoError(w, err)
	return w.waitForEnd(node, job)
}

// waitForEnd waits until a job has ended, and returns its final state.
func (w *world) waitForEnd(node *ledger.Service, job domain.Job) domain.Job {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 24*time.Hour)
	defer cancel()
	job, err := node.WaitForJob(ctx, job)
	require.NoError(w, err)
	require.NotEqual(w, domain.JobRunning, job.State, job.Report)
	return job
}

// completeCrawl runs a crawl of the bucket, requires that it succeeds, and returns its counts.
func (w *world) completeCrawl() domain.JobCounts {
	w.Helper()
	job := w.crawl("")
	require.Equal(w, domain.JobCompleted, job.State, job.Report)
	return job.Counts
}

func (w *world) name(key string) domain.ObjectName {
	w.Helper()
	name, err := domain.ParseObjectName(bucket, key)
	require.NoError(w, err)
	return name
}

// report ingests events for the object called key, as if the store had reported them.
func (w *world) report(key string, events ...domain.ObjectEvent) {
	w.Helper()
	for i := range events {
		w.events++
		if events[i].Sequencer.IsNull() {
			events[i].Carrier = domain.Carrier{Message: fmt.Sprint("message-", w.events)}
		}
		results, err := w.objects.Ingest(w.Context(), []repository.ObjectReport{{Name: w.name(key), ObjectEvent: events[i]}})
		require.NoError(w, err)
		require.NoError(w, results[0].Err)
	}
}

// script returns the events in the text of a script.
func script(text string) []domain.ObjectEvent { return slices.Concat(objecttest.Calls(text)...) }

// setListed sets the latest version that the store lists for key.
func (w *world) setListed(key string, o repository.SourceObject) {
	o.Key = key
	w.source.Put(bucket, o)
}

// describe returns the rows of the object called key, in the form of objecttest.Describe.
func (w *world) describe(key string) string {
	w.Helper()
	o, err := w.objects.Object(w.Context(), w.name(key))
	if domain.KindOf(err) == domain.NotFound {
		return ""
	}
	require.NoError(w, err)
	return objecttest.Describe(o.Rows, o.Current)
}

// state returns the rows of all objects in the bucket, one object on each line.
func (w *world) state() string {
	w.Helper()
	page, err := w.objects.List(w.Context(), repository.ObjectRange{Bucket: bucket}, 1_000_000)
	require.NoError(w, err)
	var all strings.Builder
	for i := range page.Objects {
		o := &page.Objects[i]
		fmt.Fprintf(&all, "%s: %s\n", o.Name.Key(), objecttest.Describe(o.Rows, o.Current))
	}
	return all.String()
}

func version(text string) domain.VersionID {
	v, err := domain.ParseVersionID(text)
	if err != nil {
		panic(err)
	}
	return v
}
