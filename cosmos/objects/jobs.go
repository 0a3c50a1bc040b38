package objects

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.Jobs = (*Store)(nil)

// CreateJob implements [repository.Jobs].
func (s *Store) CreateJob(ctx context.Context, job *domain.Job) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("create job: %w", err)
	}
	c := s.client.Begin("create job")
	return c.Outcome("create job", c.Retry(ctx, func() error { return s.createJob(ctx, c, job) }))
}

// createJob stores a job, its runningDoc if the kind is exclusive, and its requestDoc if the kind has
// long requests. It writes all documents in one batch, which is atomic: a crash leaves all of them or
// none.
func (s *Store) createJob(ctx context.Context, c *client.Call, job *domain.Job) error {
	d := newJobDoc(job, s.client.NewID(), nil)
	r := &runningDoc{
		ID: runningID(job.ID.Kind, job.Bucket), PartitionKey: jobsKey, Kind: jobsDocument.Name, Bucket: job.Bucket, UUID: job.ID.UUID(),
	}
	_, err := c.Batch(ctx, s.objects, jobsKey, false, func(b *azcosmos.TransactionalBatch) {
		b.CreateItem(client.Encode(d), nil)
		if job.ID.Kind.IsExclusive() {
			b.CreateItem(client.Encode(r), nil)
		}
		if d.hasSeparateRequest() {
			b.CreateItem(client.Encode(newRequestDoc(job)), nil)
		}
	})
	if !client.IsRefused(err) {
		return err
	}
	if err = s.readCurrent(ctx, c, d.ID, jobDocument, &jobDoc{}); !client.IsNotFound(err) {
		return err // nil: the job is stored already, perhaps by an earlier attempt
	}
	var running runningDoc
	err = s.readCurrent(ctx, c, r.ID, jobsDocument, &running)
	if client.IsNotFound(err) {
		return client.ErrStale // no job runs now: try again
	}
	if err != nil {
		return err
	}
	id, err := domain.ParseJobID(job.ID.Kind, running.UUID)
	if err != nil {
		return domain.Errorf(domain.Damaged, "document %s of %s: %w", running.ID, jobsKey, err)
	}
	return &repository.JobRunsError{ID: id, Bucket: job.Bucket}
}

// readCurrent reads a document by a patch that changes nothing. Unlike a read, it is never stale.
func (s *Store) readCurrent(ctx context.Context, c *client.Call, id string, kind client.DocumentKind, into any) error {
	ops := client.NewPatch(kind)
	ops.AppendSet("/kind", kind.Name)
	err := c.Patch(ctx, s.objects, jobsKey, id, ops, into)
	if client.StatusOf(err) != http.StatusPreconditionFailed {
		return err
	}
	if _, err = c.Read(ctx, s.objects, jobsKey, id, into); err == nil || client.IsNotFound(err) {
		// The patch is refused only if the document has a newer format. The read did not return that
		// document, so the read was stale.
		err = client.ErrStale
	}
	return err
}

func (s *Store) readJob(ctx context.Context, c *client.Call, id domain.JobID) (*jobDoc, error) {
	d := &jobDoc{}
	_, err := c.Read(ctx, s.objects, jobsKey, jobDocID(id), d)
	if client.IsNotFound(err) {
		return nil, noSuchJob(id)
	}
	return d, err
}

func noSuchJob(id domain.JobID) error {
	return domain.Errorf(domain.NotFound, "there is no such %s", id.Kind)
}

// Job implements [repository.Jobs].
func (s *Store) Job(ctx context.Context, id domain.JobID) (job domain.Job, err error) {
	if err := ctx.Err(); err != nil {
		return job, fmt.Errorf("read job: %w", err)
	}
	c := s.client.Begin("read job")
	d, err := s.readJob(ctx, c, id)
	if err == nil {
		job, err = s.wholeJob(ctx, c, d)
	}
	return job, c.Outcome("read job", err)
}

// wholeJob decodes the job in d, and adds its request, which may be in a requestDoc.
func (s *Store) wholeJob(ctx context.Context, c *client.Call, d *jobDoc) (domain.Job, error) {
	job, err := d.job()
	if err != nil || !d.hasSeparateRequest() {
		return job, err
	}
	r := &requestDoc{}
	err = c.Retry(ctx, func() error {
		_, err := c.Read(ctx, s.objects, jobsKey, requestID(job.ID), r)
		if client.IsNotFound(err) {
			return client.ErrNotYetVisible
		}
		return err
	})
	job.Request = r.Request
	return job, err
}

// ListJobs implements [repository.Jobs].
func (s *Store) ListJobs(ctx context.Context, before domain.JobID, limit int) ([]domain.Job, error) {
	p := &params{}
	prefix := jobPrefix(before.Kind)
	end := prefix + "~" // sorts after any UUID
	if !before.IsZero() {
		end = jobDocID(before)
	}
	members := "*"
	if before.Kind.HasLongRequest() {
		members = membersWithoutRequest
	}
	text := fmt.Sprintf("SELECT TOP %d %s FROM c WHERE c.id > %s AND c.id < %s ORDER BY c.id DESC", limit, members, p.add(prefix), p.add(end))
	return s.queryJobs(ctx, text, p)
}

// RunningJobs implements [repository.Jobs].
func (s *Store) RunningJobs(ctx context.Context) ([]domain.Job, error) {
	return s.queryJobs(ctx, "SELECT "+membersWithoutRequest+" FROM c WHERE c.live = true", &params{})
}

func (s *Store) queryJobs(ctx context.Context, text string, p *params) (jobs []domain.Job, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	c := s.client.Begin("list jobs")
	docs, err := client.All[jobDoc](ctx, c.Query(s.objects, jobsKey, text, p.all...))
	for i := 0; i < len(docs) && err == nil; i++ {
		var job domain.Job
		job, err = docs[i].job()
		jobs = append(jobs, job)
	}
	if err != nil {
		return nil, c.Outcome("list jobs", err)
	}
	return jobs, nil
}

// ClaimJob implements [repository.Jobs].
func (s *Store) ClaimJob(ctx context.Context, id domain.JobID, owner string, now, until time.Time) (domain.Job, error) {
	return s.changeWholeJob(ctx, "claim job", id, func(stored *domain.Job) error { return stored.Claim(owner, now, until) })
}

// SaveJob implements [repository.Jobs].
func (s *Store) SaveJob(ctx context.Context, job *domain.Job) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("save job: %w", err)
	}
	c := s.client.Begin("save job")
	_, err := s.changeJob(ctx, c, job.ID, func(stored *domain.Job) error {
		err := stored.CheckLease(job.Lease)
		if err == nil {
			*stored = *job
		}
		return err
	})
	return c.Outcome("save job", err)
}

// StopJob implements [repository.Jobs].
func (s *Store) StopJob(ctx context.Context, id domain.JobID, at time.Time) (domain.Job, error) {
	return s.changeWholeJob(ctx, "stop job", id, func(stored *domain.Job) error {
		stored.End(domain.JobStopped, at)
		return nil
	})
}

// changeWholeJob changes a job, and returns the changed job with its request.
func (s *Store) changeWholeJob(ctx context.Context, what string, id domain.JobID, change func(*domain.Job) error) (domain.Job, error) {
	if err := ctx.Err(); err != nil {
		return domain.Job{}, fmt.Errorf("%s: %w", what, err)
	}
	c := s.client.Begin(what)
	d, err := s.changeJob(ctx, c, id, change)
	if err != nil {
		return domain.Job{}, c.Outcome(what, err)
	}
	job, err := s.wholeJob(ctx, c, d)
	return job, c.Outcome(what, err)
}

// changeJob replaces the document of a job If-Match, and returns the new document. If change ends the
// job, the same batch deletes the runningDoc and sets the time to live of the requestDoc. The batch is
// atomic, so a crash leaves all of it or nothing. After a refusal, the write id in the document shows
// whether the write was applied. If the job is not found, or change fails with Conflict, changeJob
// repeats the decision with the current document, because the first read may be stale.
func (s *Store) changeJob(ctx context.Context, c *client.Call, id domain.JobID, change func(*domain.Job) error) (stored *jobDoc, err error) {
	writeID := s.client.NewID()
	err = c.Retry(ctx, func() error {
		var job domain.Job
		d, err := s.readJob(ctx, c, id)
		if err == nil {
			job, err = d.change(writeID, change)
		}
		if kind := domain.KindOf(err); kind == domain.NotFound || kind == domain.Conflict {
			d = &jobDoc{}
			err = s.readCurrent(ctx, c, jobDocID(id), jobDocument, d)
			if client.IsNotFound(err) {
				return noSuchJob(id)
			}
			if err == nil {
				job, err = d.change(writeID, change)
			}
		}
		if stored = d; err != nil || d.WriteID == writeID || !d.Live { // the write was applied, or the job has ended and cannot change
			return err
		}
		next := newJobDoc(&job, writeID, d)
		_, err = c.Batch(ctx, s.objects, jobsKey, false, func(b *azcosmos.TransactionalBatch) {
			b.ReplaceItem(d.ID, client.Encode(next), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &d.ETag})
			if id.Kind.IsExclusive() && d.Live && !next.Live {
				b.DeleteItem(runningID(id.Kind, job.Bucket), nil)
			}
			if d.hasSeparateRequest() && !next.Live {
				ops := client.NewPatch(requestDocument)
				ops.AppendSet("/ttl", jobTTL)
				b.PatchItem(requestID(id), ops, nil)
			}
		})
		stored = next
		if client.IsRefused(err) {
			return client.ErrStale
		}
		return err
	})
	return stored, err
}

// change applies a change to the job in d, and returns the job. If d already has the id of the write, it
// returns the job unchanged.
func (d *jobDoc) change(writeID string, change func(*domain.Job) error) (domain.Job, error) {
	job, err := d.job()
	if err == nil && d.WriteID != writeID {
		err = change(&job)
	}
	return job, err
}
