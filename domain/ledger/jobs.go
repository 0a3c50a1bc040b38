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

// The time limits of jobs.
const (
	jobLease       = time.Minute      // duration of a lease; after it expires, another node takes over the job
	minJobInterval = 10 * time.Second // minimum interval between searches for jobs that are not running on any node
	maxJobInterval = 30 * time.Second
	releaseTime    = 5 * time.Second // time limit for releasing a lease when the node stops

	maxJobs     = 4  // maximum number of jobs that run on a node concurrently
	maxAttempts = 20 // maximum number of attempts for one step of a job
)

// A jobRunner records which jobs are running on this node.
type jobRunner struct {
	started chan struct{} // contains an element if RunJobs has to search for jobs

	mu      *sync.Mutex
	working map[domain.JobID]bool
}

func newJobRunner() jobRunner {
	return jobRunner{started: make(chan struct{}, 1), mu: new(sync.Mutex), working: make(map[domain.JobID]bool)}
}

// claimJob records that a job is running on this node. It returns false if the job is already
// running here, or if maxJobs other jobs are.
func (r *jobRunner) claimJob(id domain.JobID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.working[id] || len(r.working) == maxJobs {
		return false
	}
	r.working[id] = true
	return true
}

func (r *jobRunner) releaseJob(id domain.JobID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.working, id)
	r.notify() // search for jobs that waited until this job ended
}

// notify makes RunJobs search for jobs immediately.
func (r *jobRunner) notify() {
	select {
	case r.started <- struct{}{}:
	default:
	}
}

// createJob stores a job and notifies RunJobs, which starts it.
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

// Job returns the stored job with the given id.
func (s *Service) Job(ctx context.Context, id domain.JobID) (domain.Job, error) {
	return s.Jobs.Job(ctx, id)
}

// ListJobs returns up to limit jobs of the same kind as before that began earlier, the newest
// first.
func (s *Service) ListJobs(ctx context.Context, before domain.JobID, limit int) ([]domain.Job, error) {
	return s.Jobs.ListJobs(ctx, before, limit)
}

// StopJob ends a running job. The node on which the job is running stops after the current step,
// and the results of this step remain stored.
func (s *Service) StopJob(ctx context.Context, id domain.JobID) (domain.Job, error) {
	return s.Jobs.StopJob(ctx, id, s.opts.Clock().UTC())
}

// WaitForJob waits until a job has ended or ctx ends. It returns the last state of the job that it
// has read.
func (s *Service) WaitForJob(ctx context.Context, job domain.Job) (domain.Job, error) {
	const minPause, maxPause = 20 * time.Millisecond, time.Second
	for pause := minPause; job.State == domain.JobRunning && sleepFor(ctx, pause); pause = min(2*pause, maxPause) {
		found, err := s.Jobs.Job(ctx, job.ID)
		switch {
		case err == nil:
			job = found
		case ctx.Err() == nil && domain.KindOf(err) != domain.NotFound: // NotFound means that the read was stale
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

// RunJobs runs new jobs, and jobs whose leases have expired, until ctx ends. It returns after all
// its jobs have paused or ended.
func (s *Service) RunJobs(ctx context.Context) {
	random := s.randomBytes()
	owner := fmt.Sprintf("%x", random)
	var working sync.WaitGroup
	defer working.Wait()
	for {
		if err := s.claimJobs(ctx, owner, &working); err != nil && ctx.Err() == nil {
			s.opts.Logger.WarnContext(ctx, "the jobs on objects could not be read; the hub tries again", "error", err)
		}
		timer := time.NewTimer(minJobInterval + time.Duration(s.opts.Random()%uint64(maxJobInterval-minJobInterval)))
		select {
		case <-timer.C:
		case <-s.jobs.started:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// claimJobs starts jobs that are not running on another node.
func (s *Service) claimJobs(ctx context.Context, owner string, working *sync.WaitGroup) error {
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
			s.jobs.releaseJob(job.ID)
			if kind := domain.KindOf(err); kind == domain.Conflict || kind == domain.NotFound {
				continue // another node claimed the job, or the job has ended
			}
			return err
		}
		working.Go(func() {
			defer s.jobs.releaseJob(claimed.ID)
			s.runJob(ctx, &claimed)
		})
	}
	return nil
}

// A task is one execution of a job on this node.
type task struct {
	*Service
	job *domain.Job
}

// runJob runs a job until it ends or pauses. It pauses if a step failed or the node stops.
func (s *Service) runJob(ctx context.Context, job *domain.Job) {
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
		t.releaseLease(ctx, minJobInterval, logger)
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

// releaseLease makes the job's lease expire after a pause, so that any node can then resume the
// job.
func (t *task) releaseLease(ctx context.Context, pause time.Duration, logger *slog.Logger) {
	t.job.Lease.Until = t.opts.Clock().UTC().Add(pause)
	t.storeProgress(ctx, logger)
}

// storeProgress stores the job, even if the node is stopping. It changes nothing if the job has ended
// or another node has taken it over. If the write fails, a node resumes the job after the stored lease
// has expired.
func (t *task) storeProgress(ctx context.Context, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if err := t.Jobs.SaveJob(ctx, t.job); err != nil && domain.KindOf(err) != domain.Conflict {
		logger.WarnContext(ctx, "the state of a job on objects could not be stored; a node resumes it later", "error", err)
	}
}

// runSteps runs the remaining steps of a job.
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

// saveProgress stores a job's progress after a successful step, and renews the job's lease.
func (t *task) saveProgress(ctx context.Context) error {
	t.job.Report, t.job.Attempts = "", 0
	return t.renewLease(ctx)
}

// renewLease stores the job. If the job is running, it also renews the lease.
func (t *task) renewLease(ctx context.Context) error {
	if t.job.State == domain.JobRunning {
		t.job.Lease.Until = t.opts.Clock().UTC().Add(jobLease)
	}
	return t.Jobs.SaveJob(ctx, t.job)
}

// renewOldLease renews the lease if at least a third of its duration has passed.
func (t *task) renewOldLease(ctx context.Context) error {
	if t.opts.Clock().Before(t.job.Lease.Until.Add(-jobLease * 2 / 3)) {
		return nil
	}
	return t.renewLease(ctx)
}

// completeJob records that the job has completed.
func (t *task) completeJob(ctx context.Context) error {
	t.job.End(domain.JobCompleted, t.opts.Clock().UTC())
	return t.saveProgress(ctx)
}
