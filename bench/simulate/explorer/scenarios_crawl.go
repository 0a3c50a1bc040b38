package explorer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A Crawl contains the listing that a crawl finds in the store, and the expected result of the crawl.
type Crawl struct {
	Listed  []repository.SourceObject // objects in the store at the time crawledAt
	Rows    int                       // limit for the rows that the crawl adds
	Current string                    // text, or a part of it, that describes the final current row; "" means no current row
}

// crawledAt is the time of a crawl. The ledger subtracts domain.ClockMargin from it, so the crawl counts as 30 seconds
// after FirstMoment: before events at +40 seconds, and after the other events of the scenarios.
func crawledAt() time.Time { return objecttest.FirstMoment.Add(30*time.Second + domain.ClockMargin) }

// startedCrawl returns the job that the preparation starts.
func startedCrawl() *domain.Job {
	return &domain.Job{
		ID: domain.NewJobID(domain.CrawlJob, crawledAt(), [10]byte{}), Bucket: "bucket", Request: "{}", State: domain.JobRunning, Started: crawledAt(),
	}
}

// StartCrawl stores the job of a crawl.
func (m *Member) StartCrawl() {
	if err := m.objects.CreateJob(m.ctx, startedCrawl()); err != nil {
		panic(err) // a preparation has no conflicts or faults
	}
}

// endingJobs is a store of jobs. It calls the function ended after a job was saved for the last time.
type endingJobs struct {
	repository.Jobs
	ended func()
}

// SaveJob implements repository.Jobs.
func (j *endingJobs) SaveJob(ctx context.Context, job *domain.Job) error {
	err := j.Jobs.SaveJob(ctx, job)
	if job.State != domain.JobRunning || job.Attempts > 0 {
		j.ended()
	}
	return err
}

// Crawl runs the started crawl. Its leases and cursors are in memory, because the scenarios concern the page of the
// crawl and concurrent events, not jobs.
func (m *Member) Crawl() {
	source, job := memory.NewSource("bucket"), startedCrawl()
	for _, o := range m.scenario.Crawl.Listed {
		source.Put("bucket", o)
	}
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	jobs := &endingJobs{memory.NewJobs(), cancel}
	service := ledger.New(
		ledger.Ports{Objects: m.objects, Jobs: jobs, Source: source},
		ledger.Options{Clock: crawledAt, Random: newSeeded(uint64(m.name) + 500)},
	)
	err := jobs.CreateJob(ctx, job)
	if err == nil {
		service.RunJobs(ctx)
		*job, err = service.Job(m.ctx, job.ID)
	}
	if err == nil && job.State != domain.JobCompleted {
		err = domain.Errorf(domain.Unavailable, "the crawl has failed: %s", job.Report)
	}
	m.noteSight(sight{what: "crawled", err: err})
}

func crawler() Party { return partyOf("crawl", (*Member).Crawl) }

// crawlScenarios returns the scenarios in which a page of a crawl is stored while events of the same object arrive.
func crawlScenarios() []*Scenario {
	known := prepareWith(ingestAll(reportsOf("key", "[C@10+10]")), (*Member).StartCrawl)
	versions := prepareWith(ingestAll(reportsOf("key", "[C@10/1+10] [C@20/2+12] [D@30/2+13] [C@40/3+14]")), (*Member).StartCrawl) // version 1 is spilled
	isListed := []repository.SourceObject{{Key: "key", ObjectFacts: domain.ObjectFacts{ETag: "crawl"}}}
	return []*Scenario{
		{
			Name: "object-crawl-made", Quick: true, Text: "a crawl does not list an object that is created during it; a crash, a lost reply",
			Objects: true, Crashes: 1, Lost: 1, Prepare: known, Crawl: &Crawl{Rows: 1, Current: "C@20+"},
			Parties: []Party{crawler(), ingester("made", reportsOf("key", "[C@20+40]"))},
		},
		{
			Name: "object-crawl-deleted", Quick: true, Text: "a crawl lists an object that is deleted just then; a crash, a lost reply",
			Objects: true, Crashes: 1, Lost: 1, Prepare: known, Crawl: &Crawl{Listed: isListed, Rows: 1},
			Parties: []Party{crawler(), ingester("deleted", reportsOf("key", "[D@20+40]"))},
		},
		{
			Name: "object-crawl-late", Quick: true, Text: "the late event of an object that a crawl finds to be deleted; a crash, a lost reply",
			Objects: true, Crashes: 1, Lost: 1, Prepare: known, Crawl: &Crawl{Rows: 1},
			Parties: []Party{crawler(), ingester("late", reportsOf("key", "[D@20+20]"))},
		},
		{
			Name: "object-crawl-late-stale", Quick: true, Text: "the same on a Session account, two stale reads",
			Objects: true, Session: true, Stale: 2, Behind: 2, Prepare: known, Crawl: &Crawl{Rows: 1},
			Parties: []Party{crawler(), ingester("late", reportsOf("key", "[D@20+20]"))},
		},
		{
			Name: "object-crawl-versions", Quick: true, Text: "a crawl finds that no version exists while late events delete two, one of them spilled; a crash, a lost reply",
			Objects: true, Crashes: 1, Lost: 1, Prepare: versions, Crawl: &Crawl{Rows: 2},
			Parties: []Party{crawler(), ingester("late", reportsOf("key", "[D@50/3+20] [D@60/1+21]"))},
		},
	}
}

// verifyObjects returns an error unless each object has the expected current row, and at most the allowed number of
// rows of the crawl.
func (c *Crawl) verifyObjects(store *objects.Store, names []domain.ObjectName) error {
	for _, name := range names {
		text, err := describeObject(store, name)
		if err != nil {
			return err
		}
		if c.Current == "" && strings.Contains(text, "+") || !strings.Contains(text, c.Current) {
			return fmt.Errorf("L3: object %s is %s, want the current row %q", name.Key(), text, c.Current)
		}
		o, err := store.Object(context.Background(), name)
		if err != nil {
			return err
		}
		rows, err := store.History(context.Background(), name, domain.ObjectOrder{}, 100)
		if err != nil {
			return err
		}
		generated := 0
		for i := range rows {
			if rows[i].IsGenerated() {
				generated++
			}
			if rows[i].IsGenerated() && rows[i].Duplicates > 0 {
				return fmt.Errorf("L5: a row of the crawl has %d duplicates: %s", rows[i].Duplicates, text)
			}
		}
		if generated > c.Rows || o.Events != int64(len(rows)) {
			return fmt.Errorf("L2: %d rows are of the crawl, which adds at most %d: %s", generated, c.Rows, text)
		}
	}
	return nil
}
