package objects

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A jobNodes distributes calls over several nodes, round robin.
type jobNodes struct {
	all  []*Store
	next atomic.Int64
}

func (n *jobNodes) node() *Store { return n.all[int(n.next.Add(1))%len(n.all)] }

func (n *jobNodes) CreateJob(ctx context.Context, job *domain.Job) error {
	return n.node().CreateJob(ctx, job)
}

func (n *jobNodes) Job(ctx context.Context, id domain.JobID) (domain.Job, error) {
	return n.node().Job(ctx, id)
}

func (n *jobNodes) ListJobs(ctx context.Context, before domain.JobID, limit int) ([]domain.Job, error) {
	return n.node().ListJobs(ctx, before, limit)
}

func (n *jobNodes) RunningJobs(ctx context.Context) ([]domain.Job, error) {
	return n.node().RunningJobs(ctx)
}

func (n *jobNodes) ClaimJob(ctx context.Context, id domain.JobID, owner string, now, until time.Time) (domain.Job, error) {
	return n.node().ClaimJob(ctx, id, owner, now, until)
}

func (n *jobNodes) SaveJob(ctx context.Context, job *domain.Job) error {
	return n.node().SaveJob(ctx, job)
}

func (n *jobNodes) StopJob(ctx context.Context, id domain.JobID, at time.Time) (domain.Job, error) {
	return n.node().StopJob(ctx, id, at)
}

func TestJobsConformance(t *testing.T) {
	t.Parallel()
	a := accounttest.New(t, embedded.Options{}, Containers())
	repositorytest.RunJobs(t, func(*testing.T) repository.Jobs {
		return &jobNodes{all: []*Store{New(a.Connect(), Options{Retries: 100}), New(a.Connect(), Options{Retries: 100})}}
	})
}

var jobTime = time.Date(2026, 4, 5, 6, 7, 8, 0, time.UTC)

func newJob(n byte) *domain.Job {
	return &domain.Job{
		ID: domain.NewJobID(domain.CrawlJob, jobTime, [10]byte{n}), Bucket: "bucket", Request: "{}", State: domain.JobRunning, Started: jobTime,
	}
}

// runJobs runs two crawls of a bucket one after the other, and requests a third crawl, which is refused.
// A repeated call has the same result.
func runJobs(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	first, second := newJob(1), newJob(2)
	require.NoError(t, s.CreateJob(ctx, first))
	runs, ok := errors.AsType[*repository.JobRunsError](s.CreateJob(ctx, second))
	require.True(t, ok)
	require.Equal(t, first.ID, runs.ID)
	job, err := s.ClaimJob(ctx, first.ID, "node", jobTime, jobTime.Add(time.Minute))
	require.NoError(t, err)
	require.EqualValues(t, 1, job.Lease.Number)
	_, err = s.ClaimJob(ctx, first.ID, "other", jobTime, jobTime.Add(time.Minute))
	require.Equal(t, domain.Conflict, domain.KindOf(err), "%v", err)
	job.Cursor = "page 1"
	require.NoError(t, s.SaveJob(ctx, &job))
	old := job
	job, err = s.ClaimJob(ctx, first.ID, "other", jobTime.Add(time.Minute), jobTime.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, "page 1", job.Cursor)
	err = s.SaveJob(ctx, &old)
	require.Equal(t, domain.Conflict, domain.KindOf(err), "%v", err)
	job.End(domain.JobCompleted, jobTime.Add(time.Minute))
	require.NoError(t, s.SaveJob(ctx, &job))
	require.NoError(t, s.CreateJob(ctx, second))
	stopped, err := s.StopJob(ctx, second.ID, jobTime)
	require.NoError(t, err)
	require.Equal(t, domain.JobStopped, stopped.State)
	_, err = s.StopJob(ctx, newJob(3).ID, jobTime)
	require.Equal(t, domain.NotFound, domain.KindOf(err), "%v", err)
}

// checkJobs requires the documents that a complete runJobs stores.
func checkJobs(t *testing.T, s *Store, what ...any) {
	t.Helper()
	all, err := s.ListJobs(t.Context(), domain.JobID{Kind: domain.CrawlJob}, 10)
	require.NoError(t, err, what...)
	require.Len(t, all, 2, what...)
	require.Equal(t, domain.JobStopped, all[0].State, what...)
	require.Equal(t, domain.JobCompleted, all[1].State, what...)
	require.Equal(t, "page 1", all[1].Cursor, what...)
	require.EqualValues(t, 2, all[1].Lease.Number, what...)
	running, err := s.RunningJobs(t.Context())
	require.NoError(t, err, what...)
	require.Empty(t, running, what...)
	require.NoError(t, s.CreateJob(t.Context(), newJob(4)), "the bucket is free: %v", what)
}

// Each request for a job fails once with each fault. The results of the calls are the same as without
// faults.
func TestEveryRequestOfJobsBrokenOnce_ChangesNoResult(t *testing.T) {
	for _, fault := range faulty.CommonFaults() {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, Containers())
					node := New(a.Connect(), Options{})
					a.Transport.BreakOne(n, fault)
					runJobs(t, node)
					broken := a.Transport.Calls() >= n
					a.Transport.Break(nil)
					checkJobs(t, node, "request %d", n)
					if !broken {
						require.Greater(t, n, 15)
						return
					}
				}
			})
		})
	}
}

// Some reads of jobs return an old state, as an account with session consistency may do. The results of
// the calls are the same as with current reads.
func TestStaleReadsOfJobs_ChangeNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(seed, seed))
			isOld := true
			a := accounttest.New(t, embedded.Options{Consistency: "Session", Stale: func() int {
				if !isOld {
					return 0
				}
				return rng.IntN(7)
			}}, Containers())
			node := New(a.Connect(), Options{Retries: 1000})
			runJobs(t, node)
			isOld = false
			checkJobs(t, node, "seed %d", seed)
		}
	})
}

// The document of an ended job expires. The document of a running job does not expire.
func TestAJobThatHasEndedIsKeptForAMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := accounttest.New(t, embedded.Options{}, Containers())
		node := New(a.Connect(), Options{})
		ended, running := newJob(1), newJob(2)
		running.Bucket = "another"
		require.NoError(t, node.CreateJob(t.Context(), ended))
		require.NoError(t, node.CreateJob(t.Context(), running))
		_, err := node.StopJob(t.Context(), ended.ID, jobTime)
		require.NoError(t, err)
		lists := func() (ids []domain.JobID) {
			all, err := node.ListJobs(t.Context(), domain.JobID{Kind: domain.CrawlJob}, 10)
			require.NoError(t, err)
			for i := range all {
				ids = append(ids, all[i].ID)
			}
			return ids
		}
		<-time.After(repository.JobRetention - time.Minute)
		require.Equal(t, []domain.JobID{running.ID, ended.ID}, lists())
		_, err = node.StopJob(t.Context(), ended.ID, jobTime) // an ended job does not change
		require.NoError(t, err)
		<-time.After(2 * time.Minute)
		require.Equal(t, []domain.JobID{running.ID}, lists())
		_, err = node.Job(t.Context(), ended.ID)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		<-time.After(10 * repository.JobRetention)
		require.Equal(t, []domain.JobID{running.ID}, lists())
	})
}
