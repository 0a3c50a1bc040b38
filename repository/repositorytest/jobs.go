package repositorytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// RunJobs checks an implementation against the contract of repository.Jobs.
func RunJobs(t *testing.T, open func(t *testing.T) repository.Jobs) {
	for _, r := range jobRules {
		t.Run(r.name, func(t *testing.T) {
			r.test(&jobFixture{T: t, Jobs: open(t), ctx: t.Context(), bucket: NewActor().String(), now: firstJob.Add(time.Duration(jobTimes.Add(1)) * time.Hour)})
		})
	}
}

var firstJob = time.Date(2026, 4, 5, 6, 7, 8, 0, time.UTC)

// jobTimes counts the cases, so that each case can use a different hour.
var jobTimes atomic.Int64

// A jobFixture is the environment of a case. No other case uses its bucket or its time.
type jobFixture struct {
	*testing.T
	repository.Jobs
	ctx    context.Context
	bucket string
	now    time.Time
	made   byte
}

// newJob returns a job that begins now.
func (f *jobFixture) newJob(kind domain.JobKind) *domain.Job {
	f.made++
	return &domain.Job{
		ID: domain.NewJobID(kind, f.now.Add(time.Duration(f.made)*time.Millisecond), [10]byte{f.made}), Bucket: f.bucket, Request: `{"prefix":"a/"}`,
		State: domain.JobRunning, Started: f.now,
	}
}

// createJob stores a job.
func (f *jobFixture) createJob(kind domain.JobKind) *domain.Job {
	f.Helper()
	job := f.newJob(kind)
	require.NoError(f, f.CreateJob(f.ctx, job))
	return job
}

// claimJob assigns the lease of a job to owner for a minute.
func (f *jobFixture) claimJob(id domain.JobID, owner string) *domain.Job {
	f.Helper()
	job, err := f.ClaimJob(f.ctx, id, owner, f.now, f.now.Add(time.Minute))
	require.NoError(f, err)
	return &job
}

// readJob returns a job as it is stored.
func (f *jobFixture) readJob(id domain.JobID) *domain.Job {
	f.Helper()
	job, err := f.Job(f.ctx, id)
	require.NoError(f, err)
	return &job
}

func (f *jobFixture) wantKind(kind domain.Kind, err error) {
	f.Helper()
	require.Error(f, err)
	require.Equal(f, kind, domain.KindOf(err), "%v", err)
}

type jobRule struct {
	name string
	test func(f *jobFixture)
}

var jobRules = []jobRule{
	{"AllOfAJobIsKept", func(f *jobFixture) {
		job := f.createJob(domain.CrawlJob)
		require.Equal(f, job, f.readJob(job.ID))
		job = f.claimJob(job.ID, "node")
		require.Equal(f, domain.JobLease{Owner: "node", Number: 1, Until: f.now.Add(time.Minute)}, job.Lease)
		job.Cursor, job.Report, job.Attempts = "page 7 é", "no answer", 3
		job.Counts = domain.JobCounts{Seen: 1 << 40, Created: 2, Deleted: 3, Changed: 5, Unchanged: 4}
		job.AddFailure("key", "is too long")
		job.Lease.Until = f.now.Add(2 * time.Minute)
		require.NoError(f, f.SaveJob(f.ctx, job))
		require.Equal(f, job, f.readJob(job.ID))
		job.End(domain.JobCompleted, f.now.Add(time.Second))
		require.NoError(f, f.SaveJob(f.ctx, job))
		require.Equal(f, job, f.readJob(job.ID))
	}},
	{"AMissingJobIsNotFound", func(f *jobFixture) {
		id := f.newJob(domain.PatchJob).ID
		_, err := f.Job(f.ctx, id)
		f.wantKind(domain.NotFound, err)
		_, err = f.ClaimJob(f.ctx, id, "node", f.now, f.now)
		f.wantKind(domain.NotFound, err)
		_, err = f.StopJob(f.ctx, id, f.now)
		f.wantKind(domain.NotFound, err)
	}},
	{"CreatingAJobAgainChangesNothing", func(f *jobFixture) {
		job := f.createJob(domain.CrawlJob)
		claimed := f.claimJob(job.ID, "node")
		require.NoError(f, f.CreateJob(f.ctx, job))
		require.Equal(f, claimed, f.readJob(job.ID))
	}},
	{"ABucketHasOneCrawl_UntilThatHasEnded", func(f *jobFixture) {
		job := f.createJob(domain.CrawlJob)
		for _, end := range []func(){
			func() {
				_, err := f.StopJob(f.ctx, job.ID, f.now)
				require.NoError(f, err)
			},
			func() {
				saved := f.claimJob(job.ID, "node")
				saved.End(domain.JobFailed, f.now)
				require.NoError(f, f.SaveJob(f.ctx, saved))
			},
		} {
			err := f.CreateJob(f.ctx, f.newJob(domain.CrawlJob))
			f.wantKind(domain.Conflict, err)
			runs, ok := errors.AsType[*repository.JobRunsError](err)
			require.True(f, ok)
			require.Equal(f, job.ID, runs.ID)
			f.createJob(domain.InventoryJob)
			f.createJob(domain.InventoryJob)
			end()
			job = f.createJob(domain.CrawlJob)
		}
		other := f.newJob(domain.CrawlJob)
		other.Bucket = "another " + f.bucket
		require.NoError(f, f.CreateJob(f.ctx, other))
	}},
	{"OfManyCrawlsOfABucketThatBeginAtOnceOneIsStored", func(f *jobFixture) {
		const n = 8
		jobs, errs := make([]*domain.Job, n), make([]error, n)
		for i := range n {
			jobs[i] = f.newJob(domain.CrawlJob)
		}
		var wait sync.WaitGroup
		for i := range n {
			wait.Go(func() { errs[i] = f.CreateJob(f.ctx, jobs[i]) })
		}
		wait.Wait()
		stored := -1
		for i, err := range errs {
			if err == nil {
				require.Negative(f, stored, "a second one is stored")
				stored = i
			} else {
				f.wantKind(domain.Conflict, err)
			}
		}
		require.GreaterOrEqual(f, stored, 0)
		require.Equal(f, jobs[stored], f.readJob(jobs[stored].ID))
	}},
	{"AnotherNodeTakesOverOnceTheLeaseHasPassed", func(f *jobFixture) {
		job := f.createJob(domain.CrawlJob)
		first := f.claimJob(job.ID, "first")
		first.Cursor = "page 1"
		require.NoError(f, f.SaveJob(f.ctx, first))
		_, err := f.ClaimJob(f.ctx, job.ID, "second", first.Lease.Until.Add(-time.Microsecond), first.Lease.Until.Add(time.Hour))
		f.wantKind(domain.Conflict, err)
		second, err := f.ClaimJob(f.ctx, job.ID, "second", first.Lease.Until, first.Lease.Until.Add(time.Hour))
		require.NoError(f, err)
		require.Equal(f, "page 1", second.Cursor)
		require.EqualValues(f, 2, second.Lease.Number)
		first.Cursor = "page 2"
		f.wantKind(domain.Conflict, f.SaveJob(f.ctx, first))
		require.Equal(f, &second, f.readJob(job.ID))
		require.NoError(f, f.SaveJob(f.ctx, &second))
	}},
	{"AnOwnerThatClaimsAgainKeepsItsLease", func(f *jobFixture) {
		job := f.createJob(domain.PatchJob)
		held := f.claimJob(job.ID, "node")
		again, err := f.ClaimJob(f.ctx, job.ID, "node", f.now, f.now.Add(time.Hour))
		require.NoError(f, err)
		require.Equal(f, held.Lease.Number, again.Lease.Number)
		require.Equal(f, f.now.Add(time.Hour), again.Lease.Until)
		require.NoError(f, f.SaveJob(f.ctx, held))
	}},
	{"OfManyNodesThatClaimAtOnceOneHasTheLease", func(f *jobFixture) {
		const n = 8
		job := f.createJob(domain.CrawlJob)
		errs := make([]error, n)
		var wait sync.WaitGroup
		for i := range n {
			wait.Go(func() {
				_, errs[i] = f.ClaimJob(f.ctx, job.ID, fmt.Sprint("node", i), f.now, f.now.Add(time.Minute))
			})
		}
		wait.Wait()
		holds := f.readJob(job.ID).Lease
		require.EqualValues(f, 1, holds.Number)
		for i, err := range errs {
			if holds.Owner == fmt.Sprint("node", i) {
				require.NoError(f, err)
			} else {
				f.wantKind(domain.Conflict, err)
			}
		}
	}},
	{"AJobThatWasStoppedIsNotSavedAndNotClaimed", func(f *jobFixture) {
		job := f.createJob(domain.CrawlJob)
		held := f.claimJob(job.ID, "node")
		for range 2 {
			stopped, err := f.StopJob(f.ctx, job.ID, f.now.Add(time.Second))
			require.NoError(f, err)
			require.Equal(f, domain.JobStopped, stopped.State)
			require.Equal(f, f.now.Add(time.Second), stopped.Ended)
			f.wantKind(domain.Conflict, f.SaveJob(f.ctx, held))
			_, err = f.ClaimJob(f.ctx, job.ID, "node", f.now.Add(time.Hour), f.now.Add(time.Hour))
			f.wantKind(domain.Conflict, err)
			require.Equal(f, &stopped, f.readJob(job.ID))
		}
	}},
	{"JobsOfAKindAreListed_TheNewestFirst", func(f *jobFixture) {
		var want []string
		for i := range 5 {
			if i > 0 {
				f.createJob(domain.InventoryJob)
			}
			want = append([]string{f.createJob(domain.PatchJob).ID.UUID()}, want...)
		}
		end := f.newJob(domain.PatchJob).ID
		for _, limit := range []int{1, 2, 5} {
			var got []string
			for before := end; len(got) < len(want); {
				page, err := f.ListJobs(f.ctx, before, limit)
				require.NoError(f, err)
				require.NotEmpty(f, page)
				require.LessOrEqual(f, len(page), limit)
				for i := range page {
					got = append(got, page[i].ID.UUID())
					before = page[i].ID
				}
			}
			require.Equal(f, want, got[:len(want)])
		}
		newest, err := f.ListJobs(f.ctx, domain.JobID{Kind: domain.PatchJob}, 1)
		require.NoError(f, err)
		require.Len(f, newest, 1)
	}},
	{"ListsHaveAllOfAJobExceptALongRequest", func(f *jobFixture) {
		for _, kind := range []domain.JobKind{domain.CrawlJob, domain.InventoryJob, domain.PatchJob} {
			id := f.createJob(kind).ID
			job := f.claimJob(id, "node")
			job.Cursor, job.Counts, job.Report, job.Attempts = "a", domain.JobCounts{Seen: 1, Created: 2, Deleted: 3, Changed: 4, Unchanged: 5, Refused: 6}, "report", 7
			job.AddFailure("object", "reason")
			require.NoError(f, f.SaveJob(f.ctx, job))
			short := *f.readJob(id)
			short.Request = ""
			running, err := f.RunningJobs(f.ctx)
			require.NoError(f, err)
			require.Contains(f, running, short)
			_, err = f.StopJob(f.ctx, id, f.now)
			require.NoError(f, err)
			ended := *f.readJob(id)
			if kind.HasLongRequest() {
				ended.Request = ""
			}
			all, err := f.ListJobs(f.ctx, domain.JobID{Kind: kind}, 1)
			require.NoError(f, err)
			require.Equal(f, []domain.Job{ended}, all)
		}
	}},
	{"JobsThatRunAreFound", func(f *jobFixture) {
		runs := map[string]bool{}
		for _, kind := range []domain.JobKind{domain.CrawlJob, domain.InventoryJob, domain.PatchJob} {
			runs[f.createJob(kind).ID.UUID()] = true
		}
		_, err := f.StopJob(f.ctx, f.createJob(domain.PatchJob).ID, f.now)
		require.NoError(f, err)
		all, err := f.RunningJobs(f.ctx)
		require.NoError(f, err)
		found := 0
		for i := range all {
			require.Equal(f, domain.JobRunning, all[i].State)
			if all[i].Bucket == f.bucket {
				require.True(f, runs[all[i].ID.UUID()])
				found++
			}
		}
		require.Equal(f, len(runs), found)
	}},
	{"ACallWhoseContextHasEndedFails", func(f *jobFixture) {
		job := f.createJob(domain.CrawlJob)
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		require.ErrorIs(f, f.CreateJob(ended, f.newJob(domain.PatchJob)), context.Canceled)
		_, err := f.Job(ended, job.ID)
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.ClaimJob(ended, job.ID, "node", f.now, f.now)
		require.ErrorIs(f, err, context.Canceled)
		require.ErrorIs(f, f.SaveJob(ended, job), context.Canceled)
		_, err = f.StopJob(ended, job.ID, f.now)
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.RunningJobs(ended)
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.ListJobs(ended, job.ID, 1)
		require.ErrorIs(f, err, context.Canceled)
		require.Equal(f, job, f.readJob(job.ID))
	}},
}
