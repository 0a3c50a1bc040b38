package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Jobs stores jobs: long-running tasks on objects. A node that works on a job has the lease of the job,
// and stores its progress by SaveJob. When the lease has expired, another node can take over the job.
// From then on, SaveJob by the previous node fails.
//
// A job is deleted JobRetention after its end.
//
// Any method may fail with Busy, Unavailable and Uncertain. After Uncertain, the call may be repeated
// with the same arguments.
type Jobs interface {
	// CreateJob stores a running job without a lease. It does not change a job that is stored already.
	// If the kind of the job is exclusive and another job of this kind runs for the same bucket,
	// CreateJob fails with a *JobRunsError.
	CreateJob(ctx context.Context, job *domain.Job) error

	// Job returns a job. The result may be stale. Job fails with NotFound if the job does not exist.
	Job(ctx context.Context, id domain.JobID) (domain.Job, error)

	// ListJobs returns up to limit jobs of before.Kind that began earlier than before, the newest first.
	// If before has no UUID, ListJobs begins with the newest job of the kind. Jobs of a kind with long
	// requests are returned without their requests. The result may be stale.
	ListJobs(ctx context.Context, before domain.JobID, limit int) ([]domain.Job, error)

	// RunningJobs returns all running jobs, without their requests. The result may be stale.
	RunningJobs(ctx context.Context) ([]domain.Job, error)

	// ClaimJob assigns the lease of a job to owner until the given time, and returns the job. It fails
	// with Conflict if the job is not running, or if the lease of another owner expires after now, and
	// with NotFound if the job does not exist. If owner was already the owner of the lease, the number
	// of the lease does not change.
	ClaimJob(ctx context.Context, id domain.JobID, owner string, now, until time.Time) (domain.Job, error)

	// SaveJob stores all members of a job, which may include a state that ends the job. It fails with
	// Conflict, and stores nothing, if the stored lease has another number or if the stored job does not
	// run.
	SaveJob(ctx context.Context, job *domain.Job) error

	// StopJob ends a running job, and returns the stored job. It does not change a job that does not run.
	// It fails with NotFound if the job does not exist.
	StopJob(ctx context.Context, id domain.JobID, at time.Time) (domain.Job, error)
}

// JobRetention is the time for which an ended job is stored.
const JobRetention = 30 * 24 * time.Hour

// A JobRunsError reports that a bucket has a running job of an exclusive kind. Its kind is Conflict.
type JobRunsError struct {
	ID     domain.JobID // id of the running job
	Bucket string
}

func (e *JobRunsError) Error() string {
	return fmt.Sprintf("%s %s of bucket %q is under way", e.ID.Kind, e.ID.UUID(), domain.Shorten(e.Bucket))
}

// Unwrap returns an error of the kind Conflict.
func (e *JobRunsError) Unwrap() error {
	return domain.Errorf(domain.Conflict, "a job of this kind is under way")
}
