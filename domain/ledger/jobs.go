package ledger

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Times of jobs.
const (
	jobLease    = time.Minute      // duration of a lease; afterwards another node takes over the job
	minJobLook  = 10 * time.Second // minimum interval between looks for jobs that no node works on
	maxJobLook  = 30 * time.Second
	releaseTime = 5 * time.Second // time to release a lease when the node stops

	maxJobs     = 4  // jobs that a node works on at the same time
	maxAttempts = 20 // attempts of one step of a job
)

// A jobRunner is the part of a Service that works on jobs.
type jobRunner struct {
	started chan struct{} // has one element if a job may have been created by this node

	mu      *sync.Mutex
	working map[domain.JobID]bool
}

func newJobRunner() jobRunner {
	return jobRunner{started: make(chan struct{}, 1), mu: new(sync.Mutex), working: make(map[domain.JobID]bool)}
}

// claimJob marks a job as being worked on by this node. It returns false if the node
// works on it already, or on maxJobs others.
func (r *jobRunner) claimJob(id domain.JobID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.working[id] || len(r.working) == maxJobs {
		return false
	}
	r.working[id] = true
	return true
}

func (r *jobRunner) dropJob(id domain.JobID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.working, id)
	r.notify() // another job may wait until this one has ended
}

// notify makes RunJobs look for jobs.
func (r *jobRunner) notify() {
	select {
	case r.started <- struct{}{}:
	default:
	}
}

// createJob stores a job. A node begins it soon.
func (s *Service) createJob(ctx context.Context, kind domain.JobKind, bucket string, request any) (domain.Job, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return domain.Job{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	now := s.opts.Clock()
	job := domain.Job{
		ID: domain.NewJobID(kind, now, s.randomBytes()), Bucket: bucket, Request: string(text), State: domain.JobRunning, Started: now.UTC(),
	}
	if err := s.Jobs.CreateJob(ctx, &job); err != nil {
		return domain.Job{}, err
	}
	s.jobs.notify()
	return job, nil
}

func (s *Service) randomBytes() (random [10]byte) {
	binary.LittleEndian.PutUint64(random[:], s.opts.Random())
	binary.LittleEndian.PutUint16(random[8:], uint16(s.opts.Random()&0xffff))
	return random
}

// Job returns a job.
func (s *Service) Job(ctx context.Context, id domain.JobID) (domain.Job, error) {
	return s.Jobs.Job(ctx, id)
}

// ListJobs returns up to limit jobs of the kind of before that began before it, the newest first.
func (s *Service) ListJobs(ctx context.Context, before domain.JobID, limit int) ([]domain.Job, error) {
	return s.Jobs.ListJobs(ctx, before, limit)
}

// StopJob ends a running job. The node that works on it stops at the end of its current step.
// What that step stores remains.
func (s *Service) StopJob(ctx context.Context, id domain.JobID) (domain.Job, error) {
	return s.Jobs.StopJob(ctx, id, s.opts.Clock().UTC())
}

// WaitForJob waits until a job has ended or ctx ends, and returns the job as it was read last.
func (s *Service) WaitForJob(ctx context.Context, job domain.Job) (domain.Job, error) {
	const minPause, maxPause = 20 * time.Millisecond, time.Second
	for pause := minPause; job.State == domain.JobRunning && sleepFor(ctx, pause); pause = min(2*pause, maxPause) {
		found, err := s.Jobs.Job(ctx, job.ID)
		switch {
		case err == nil:
			job = found
		case ctx.Err() == nil && domain.KindOf(err) != domain.NotFound: // a stale read does not find the job
			return job, err
		}
	}
	return job, nil
}

// sleepFor waits for d. It returns false if ctx ends first.
func sleepFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// RunJobs works on jobs until ctx ends: on jobs that this node created, and on jobs whose lease
// has expired. When it returns, no work is under way.
func (s *Service) RunJobs(ctx context.Context) {
	random := s.randomBytes()
	owner := fmt.Sprintf("%x", random)
	var working sync.WaitGroup
	defer working.Wait()
	for {
		if err := s.takeJobs(ctx, owner, &working); err != nil && ctx.Err() == nil {
			s.opts.Logger.WarnContext(ctx, "the jobs on objects could not be read; the hub tries again", "error", err)
		}
		look := time.NewTimer(minJobLook + time.Duration(s.opts.Random()%uint64(maxJobLook-minJobLook)))
		select {
		case <-look.C:
		case <-s.jobs.started:
		case <-ctx.Done():
		}
		look.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// takeJobs begins jobs that no node works on.
func (s *Service) takeJobs(ctx context.Context, owner string, working *sync.WaitGroup) error {
	running, err := s.Jobs.RunningJobs(ctx)
	if err != nil {
		return err
	}
	for i := range running {
		job := &running[i]
		now := s.opts.Clock().UTC()
		if now.Before(job.Lease.Until) || !s.jobs.claimJob(job.ID) {
			continue
		}
		claimed, err := s.Jobs.ClaimJob(ctx, job.ID, owner, now, now.Add(jobLease))
		if err != nil {
			s.jobs.dropJob(job.ID)
			if kind := domain.KindOf(err); kind == domain.Conflict || kind == domain.NotFound {
				continue // another node was faster
			}
			return err
		}
		working.Go(func() {
			defer s.jobs.dropJob(claimed.ID)
			s.workOn(ctx, &claimed)
		})
	}
	return nil
}

// A task is the work of a node on a job.
type task struct {
	*Service
	job *domain.Job
}

// workOn runs a job until it ends, fails or has to pause.
func (s *Service) workOn(ctx context.Context, job *domain.Job) {
	t := &task{s, job}
	logger := s.opts.Logger.With("job", string(job.ID.Kind), "id", job.ID.UUID(), "bucket", job.Bucket)
	err := t.runSteps(ctx)
	switch kind := domain.KindOf(err); {
	case err == nil:
		logger.InfoContext(ctx, "a job on objects is completed", "counts", job.Counts)
	case kind == domain.Conflict:
		logger.InfoContext(ctx, "a job on objects was stopped, or another node has taken it over", "reason", err)
	case ctx.Err() != nil:
		t.releaseLease(ctx, 0, logger)
	case isTransient(err) && job.Attempts+1 < maxAttempts:
		job.Attempts++
		job.Report = err.Error()
		logger.WarnContext(ctx, "a step of a job on objects failed; it is repeated", "attempts", job.Attempts, "error", err)
		t.releaseLease(ctx, minJobLook, logger)
	default:
		logger.ErrorContext(ctx, "a job on objects failed", "error", err)
		job.Report = err.Error()
		job.End(domain.JobFailed, s.opts.Clock().UTC())
		t.storeProgress(ctx, logger)
	}
}

// isTransient reports whether a failed step may succeed later.
func isTransient(err error) bool {
	switch domain.KindOf(err) {
	case domain.Busy, domain.Unavailable, domain.Uncertain, domain.NewerFormat:
		return !errors.Is(err, repository.ErrNoStore)
	default:
		return false
	}
}

// releaseLease releases the lease after a pause, so that any node may resume the job.
func (t *task) releaseLease(ctx context.Context, pause time.Duration, logger *slog.Logger) {
	t.job.Lease.Until = t.opts.Clock().UTC().Add(pause)
	t.storeProgress(ctx, logger)
}

// storeProgress saves the job, even if the node is stopping. If that fails, the lease expires
// by itself. It does not save a job that has ended, or that another node works on.
func (t *task) storeProgress(ctx context.Context, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if err := t.Jobs.SaveJob(ctx, t.job); err != nil && domain.KindOf(err) != domain.Conflict {
		logger.WarnContext(ctx, "the state of a job on objects could not be stored; a node resumes it later", "error", err)
	}
}

// runSteps runs all steps of a job.
func (t *task) runSteps(ctx context.Context) error {
	switch t.job.ID.Kind {
	case domain.CrawlJob:
		return t.runCrawl(ctx)
	case domain.InventoryJob:
		return t.runInventory(ctx)
	case domain.PatchJob:
		return t.runPatch(ctx)
	default:
		return domain.Errorf(domain.Invalid, "a job of kind %q is not known to this version", t.job.ID.Kind)
	}
}

// saveProgress stores the progress of a job, and prolongs its lease.
func (t *task) saveProgress(ctx context.Context) error {
	t.job.Report, t.job.Attempts = "", 0
	return t.prolongLease(ctx)
}

// prolongLease prolongs the lease.
func (t *task) prolongLease(ctx context.Context) error {
	if t.job.State == domain.JobRunning {
		t.job.Lease.Until = t.opts.Clock().UTC().Add(jobLease)
	}
	return t.Jobs.SaveJob(ctx, t.job)
}

// prolongLate prolongs the lease if a third of its duration has passed.
func (t *task) prolongLate(ctx context.Context) error {
	if t.opts.Clock().Before(t.job.Lease.Until.Add(-jobLease * 2 / 3)) {
		return nil
	}
	return t.prolongLease(ctx)
}

// completeJob marks a job as completed.
func (t *task) completeJob(ctx context.Context) error {
	t.job.End(domain.JobCompleted, t.opts.Clock().UTC())
	return t.saveProgress(ctx)
}
