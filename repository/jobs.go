package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Jobs keeps the long tasks on objects, and which node works on each. A node that works on a job has a
// lease of it, and stores its progress by SaveJob. Another node takes the job over once the lease has
// passed. A node that does not notice that its lease has passed can store nothing.
//
// A job that has ended is kept for JobRetention, and then deleted.
//
// Any method may fail with Busy, Unavailable and Uncertain. After Uncertain, the call may be repeated
// with the same arguments.
type Jobs interface {
	// CreateJob stores a running job without a lease. If the job is stored already, it is not changed.
	// If its kind is exclusive and another such job runs for its bucket, CreateJob fails with a
	// *JobRunsError.
	CreateJob(ctx context.Context, job *domain.Job) error

	// Job returns a job. It may be a stale read. It fails with NotFound if there is no such job.
	Job(ctx context.Context, id domain.JobID) (domain.Job, error)

	// ListJobs returns up to limit jobs of the kind of before that began before it, the newest first.
	// If before has no UUID, it means the end of time. If the kind has long requests, the jobs are
	// returned without them. It may be a stale read.
	ListJobs(ctx context.Context, before domain.JobID, limit int) ([]domain.Job, error)

	// RunningJobs returns all running jobs, without their requests. It may be a stale read.
	RunningJobs(ctx context.Context) ([]domain.Job, error)

	// ClaimJob gives an owner the lease of a job until a time, and returns the job. It fails with
	// Conflict if the job does not run, or if another owner has the lease at the time now, and with
	// NotFound if there is no such job. If the owner has the lease already, the number of the lease
	// stays the same.
	ClaimJob(ctx context.Context, id domain.JobID, owner string, now, until time.Time) (domain.Job, error)

	// SaveJob stores all members of a job, under its lease. Its state may end the job. It fails with
	// Conflict, and stores nothing, if the stored lease has another number or if the job does not run.
	SaveJob(ctx context.Context, job *domain.Job) error

	// StopJob ends a running job, and returns the job as it is then. A job that does not run stays as
	// it is. It fails with NotFound if there is no such job.
	StopJob(ctx context.Context, id domain.JobID, at time.Time) (domain.Job, error)
}

// JobRetention is the time for which a job is kept after its end.
const JobRetention = 30 * 24 * time.Hour

// A JobRunsError reports that a bucket has a running job of an exclusive kind. Its kind is Conflict.
type JobRunsError struct {
	ID     domain.JobID // id of the running job
	Bucket string
}

func (e *JobRunsError) Error() string {
	return fmt.Sprintf("%s %s of bucket %q is under way", e.ID.Kind, e.ID.UUID(), domain.Clip(e.Bucket))
}

// Unwrap returns an error of the kind Conflict.
func (e *JobRunsError) Unwrap() error {
	return domain.Errorf(domain.Conflict, "a job of this kind is under way")
}
