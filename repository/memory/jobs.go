package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Jobs stores jobs in a map.
type Jobs struct {
	mu   sync.Mutex
	jobs map[domain.JobID]*domain.Job // a stored job is replaced, never modified
}

var _ repository.Jobs = (*Jobs)(nil)

// NewJobs returns an empty Jobs.
func NewJobs() *Jobs { return &Jobs{jobs: make(map[domain.JobID]*domain.Job)} }

// lockJobs locks the jobs, unless ctx has ended.
func (s *Jobs) lockJobs(ctx context.Context, what string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.mu.Lock()
	return nil
}

// CreateJob implements [repository.Jobs].
func (s *Jobs) CreateJob(ctx context.Context, job *domain.Job) error {
	if err := s.lockJobs(ctx, "create job"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.jobs[job.ID] != nil {
		return nil
	}
	if job.ID.Kind.IsExclusive() {
		for id, other := range s.jobs {
			if id.Kind == job.ID.Kind && other.Bucket == job.Bucket && other.State == domain.JobRunning {
				return &repository.JobRunsError{ID: id, Bucket: job.Bucket}
			}
		}
	}
	s.jobs[job.ID] = cloneJob(job)
	return nil
}

func cloneJob(job *domain.Job) *domain.Job {
	c := *job
	c.Failures = slices.Clone(job.Failures)
	return &c
}

// findJob returns a job, or a NotFound error.
func (s *Jobs) findJob(id domain.JobID) (*domain.Job, error) {
	job := s.jobs[id]
	if job == nil {
		return nil, domain.Errorf(domain.NotFound, "there is no such %s", id.Kind)
	}
	return cloneJob(job), nil
}

// Job implements [repository.Jobs].
func (s *Jobs) Job(ctx context.Context, id domain.JobID) (domain.Job, error) {
	if err := s.lockJobs(ctx, "read job"); err != nil {
		return domain.Job{}, err
	}
	defer s.mu.Unlock()
	job, err := s.findJob(id)
	if err != nil {
		return domain.Job{}, err
	}
	return *job, nil
}

// ListJobs implements [repository.Jobs].
func (s *Jobs) ListJobs(ctx context.Context, before domain.JobID, limit int) ([]domain.Job, error) {
	found, err := s.selectJobs(ctx, !before.Kind.HasLongRequest(), func(j *domain.Job) bool {
		return j.ID.Kind == before.Kind && (before.IsZero() || j.ID.Compare(before) < 0)
	})
	return found[:min(limit, len(found))], err
}

// RunningJobs implements [repository.Jobs].
func (s *Jobs) RunningJobs(ctx context.Context) ([]domain.Job, error) {
	return s.selectJobs(ctx, false, func(j *domain.Job) bool { return j.State == domain.JobRunning })
}

func (s *Jobs) selectJobs(ctx context.Context, withRequests bool, has func(*domain.Job) bool) ([]domain.Job, error) {
	if err := s.lockJobs(ctx, "list jobs"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []domain.Job
	for _, job := range s.jobs {
		if !has(job) {
			continue
		}
		job = cloneJob(job)
		if !withRequests {
			job.Request = ""
		}
		found = append(found, *job)
	}
	slices.SortFunc(found, func(a, b domain.Job) int { return b.ID.Compare(a.ID) })
	return found, nil
}

// ClaimJob implements [repository.Jobs].
func (s *Jobs) ClaimJob(ctx context.Context, id domain.JobID, owner string, now, until time.Time) (domain.Job, error) {
	if err := s.lockJobs(ctx, "claim job"); err != nil {
		return domain.Job{}, err
	}
	defer s.mu.Unlock()
	job, err := s.findJob(id)
	if err != nil {
		return domain.Job{}, err
	}
	if err := job.Claim(owner, now, until); err != nil {
		return domain.Job{}, err
	}
	s.jobs[id] = cloneJob(job)
	return *job, nil
}

// SaveJob implements [repository.Jobs].
func (s *Jobs) SaveJob(ctx context.Context, job *domain.Job) error {
	if err := s.lockJobs(ctx, "save job"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	stored, err := s.findJob(job.ID)
	if err != nil {
		return err
	}
	if err := stored.CheckLease(job.Lease); err != nil {
		return err
	}
	s.jobs[job.ID] = cloneJob(job)
	return nil
}

// StopJob implements [repository.Jobs].
func (s *Jobs) StopJob(ctx context.Context, id domain.JobID, at time.Time) (domain.Job, error) {
	if err := s.lockJobs(ctx, "stop job"); err != nil {
		return domain.Job{}, err
	}
	defer s.mu.Unlock()
	job, err := s.findJob(id)
	if err != nil {
		return domain.Job{}, err
	}
	job.End(domain.JobStopped, at)
	s.jobs[id] = cloneJob(job)
	return *job, nil
}
