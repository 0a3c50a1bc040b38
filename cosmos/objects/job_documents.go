package objects

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var (
	jobDocument     = client.DocumentKind{Name: "job", Format: separateRequest}
	jobsDocument    = client.DocumentKind{Name: "running", Format: 1}
	requestDocument = client.DocumentKind{Name: "request", Format: 1}
)

// separateRequest is the format of a job whose request is in a separate document.
const separateRequest = 2

// jobsKey is the partition of all jobs. A store has few jobs, and one query finds the running jobs.
const jobsKey = "jobs"

// A jobDoc is a domain.Job as it is stored.
type jobDoc struct {
	ID           string       `json:"id"`
	PartitionKey string       `json:"partitionKey"`
	Kind         string       `json:"kind"`
	JobKind      string       `json:"jobKind"`
	UUID         string       `json:"uuid"`
	Bucket       string       `json:"bucket,omitempty"`
	Live         bool         `json:"live,omitempty"` // whether the job runs
	Request      string       `json:"request"`        // empty if the request is in a requestDoc
	State        string       `json:"state"`
	Started      string       `json:"started"`
	Ended        string       `json:"ended,omitempty"`
	Cursor       string       `json:"cursor,omitempty"`
	Seen         int64        `json:"seen,omitempty"`
	Created      int64        `json:"created,omitempty"`
	Deleted      int64        `json:"deleted,omitempty"`
	Changed      int64        `json:"changed,omitempty"`
	Unchanged    int64        `json:"unchanged,omitempty"`
	Refused      int64        `json:"refused,omitempty"`
	Report       string       `json:"report,omitempty"`
	Attempts     int          `json:"attempts,omitempty"`
	Failures     []failureDoc `json:"failures,omitempty"`
	Owner        string       `json:"owner,omitempty"`
	Lease        int64        `json:"lease,omitempty"`
	Until        string       `json:"until,omitempty"`
	WriteID      string       `json:"writeId"`
	TTL          int64        `json:"ttl,omitempty"` // time to live in seconds after the last write; set when the job has ended
	ETag         azcore.ETag  `json:"_etag,omitempty"`
	client.Document
}

// membersWithoutRequest lists the members of a jobDoc except its request, which may have half a megabyte
// if an older version stored the job.
const membersWithoutRequest = "c.id, c.v, c.partitionKey, c.kind, c.jobKind, c.uuid, c.bucket, c.live, c.state, c.started, c.ended, c.cursor, " +
	"c.seen, c.created, c.deleted, c.changed, c.unchanged, c.refused, c.report, c.attempts, c.failures, c.owner, c.lease, c.until, c.writeId"

func (*jobDoc) DocumentKind() client.DocumentKind { return jobDocument }

// A failureDoc is a domain.JobFailure as it is stored.
type failureDoc struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
}

// A runningDoc names the running job of an exclusive kind for a bucket. It exists as long as the job
// runs.
type runningDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	Bucket       string `json:"bucket"`
	UUID         string `json:"uuid"`
	client.FormatNumber
}

func (*runningDoc) DocumentKind() client.DocumentKind { return jobsDocument }

// A requestDoc is the request of a job whose kind has long requests. It is a separate document, because
// the document of the job is replaced at each step and the request never changes.
type requestDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	Request      string `json:"request"`
	client.FormatNumber
}

func (*requestDoc) DocumentKind() client.DocumentKind { return requestDocument }

// requestID returns the id of the requestDoc of a job.
func requestID(id domain.JobID) string { return "request." + id.UUID() }

func newRequestDoc(j *domain.Job) *requestDoc {
	return &requestDoc{ID: requestID(j.ID), PartitionKey: jobsKey, Kind: requestDocument.Name, Request: j.Request}
}

// jobTTL is the time to live of the documents of an ended job, in seconds.
const jobTTL = int64(repository.JobRetention / time.Second)

// jobPrefix returns the prefix that the ids of all jobs of a kind have. These ids sort by the start of
// the jobs.
func jobPrefix(kind domain.JobKind) string { return string(kind) + "." }

func jobDocID(id domain.JobID) string { return jobPrefix(id.Kind) + id.UUID() }

// runningID returns the id of a runningDoc.
func runningID(kind domain.JobKind, bucket string) string {
	return "running." + string(kind) + "." + keyEncoding.EncodeToString([]byte(bucket))
}

// newJobDoc returns the document of a job. It copies the unknown members of replaced, the document that
// the new document replaces. replaced is nil for a new job.
func newJobDoc(j *domain.Job, writeID string, replaced *jobDoc) *jobDoc {
	d := &jobDoc{
		ID: jobDocID(j.ID), PartitionKey: jobsKey, Kind: jobDocument.Name, JobKind: string(j.ID.Kind), UUID: j.ID.UUID(), Bucket: j.Bucket,
		Live: j.State == domain.JobRunning, State: string(j.State), Started: timeText(j.Started), Ended: timeText(j.Ended),
		Cursor: j.Cursor, Seen: j.Counts.Seen, Created: j.Counts.Created, Deleted: j.Counts.Deleted, Changed: j.Counts.Changed, Unchanged: j.Counts.Unchanged, Refused: j.Counts.Refused,
		Report: j.Report, Attempts: j.Attempts, Owner: j.Lease.Owner, Lease: j.Lease.Number, Until: timeText(j.Lease.Until), WriteID: writeID,
	}
	switch {
	case replaced != nil: // the request never changes
		d.Document, d.Request = replaced.Document, replaced.Request
	case j.ID.Kind.HasLongRequest():
		d.StoredFormat = separateRequest
	default:
		d.Request = j.Request
	}
	if !d.Live {
		d.TTL = jobTTL
	}
	for _, f := range j.Failures {
		d.Failures = append(d.Failures, failureDoc(f))
	}
	return d
}

// hasSeparateRequest reports whether the request of the job is in a requestDoc.
func (d *jobDoc) hasSeparateRequest() bool { return d.StoredFormat >= separateRequest }

// job decodes the job in d. The result has no request if the request is in a requestDoc.
func (d *jobDoc) job() (domain.Job, error) {
	var p documentParser
	id, err := domain.ParseJobID(domain.JobKind(d.JobKind), d.UUID)
	p.keepError(err)
	j := domain.Job{
		ID: id, Bucket: d.Bucket, Request: d.Request, State: domain.JobState(d.State), Started: p.time(d.Started), Ended: p.time(d.Ended), Cursor: d.Cursor,
		Counts: domain.JobCounts{Seen: d.Seen, Created: d.Created, Deleted: d.Deleted, Changed: d.Changed, Unchanged: d.Unchanged, Refused: d.Refused},
		Report: d.Report, Attempts: d.Attempts, Lease: domain.JobLease{Owner: d.Owner, Number: d.Lease, Until: p.time(d.Until)},
	}
	for _, f := range d.Failures {
		j.Failures = append(j.Failures, domain.JobFailure(f))
	}
	if p.err != nil {
		return j, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return j, nil
}
