package objects

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var (
	jobDocument  = client.DocumentKind{Name: "job", Format: 1}
	jobsDocument = client.DocumentKind{Name: "running", Format: 1}
)

// jobsKey is the partition of all jobs: there are few, and one query finds those that run.
const jobsKey = "jobs"

// A jobDoc is a domain.Job.
type jobDoc struct {
	ID           string       `json:"id"`
	PartitionKey string       `json:"partitionKey"`
	Kind         string       `json:"kind"`
	JobKind      string       `json:"jobKind"`
	UUID         string       `json:"uuid"`
	Bucket       string       `json:"bucket,omitempty"`
	Live         bool         `json:"live,omitempty"` // it runs
	Request      string       `json:"request"`
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
	TTL          int64        `json:"ttl,omitempty"` // seconds after the last write; once it has ended
	ETag         azcore.ETag  `json:"_etag,omitempty"`
	client.Document
}

// membersWithoutRequest are what a query asks for in place of a whole jobDoc, which may have half a megabyte.
const membersWithoutRequest = "c.id, c.v, c.partitionKey, c.kind, c.jobKind, c.uuid, c.bucket, c.live, c.state, c.started, c.ended, c.cursor, " +
	"c.seen, c.created, c.deleted, c.changed, c.unchanged, c.refused, c.report, c.attempts, c.failures, c.owner, c.lease, c.until, c.writeId"

func (*jobDoc) DocumentKind() client.DocumentKind { return jobDocument }

// A failureDoc is a domain.JobFailure.
type failureDoc struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
}

// A runningDoc says which job of an exclusive kind runs for a bucket. It exists as long as the job runs.
type runningDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	Bucket       string `json:"bucket"`
	UUID         string `json:"uuid"`
	client.FormatNumber
}

func (*runningDoc) DocumentKind() client.DocumentKind { return jobsDocument }

// jobPrefix begins the ids of the jobs of a kind, which sort as the jobs began.
func jobPrefix(kind domain.JobKind) string { return string(kind) + "." }

func jobDocID(id domain.JobID) string { return jobPrefix(id.Kind) + id.UUID() }

// runningID returns the id of the document that says which job of a kind runs for a bucket.
func runningID(kind domain.JobKind, bucket string) string {
	return "running." + string(kind) + "." + keyEncoding.EncodeToString([]byte(bucket))
}

// newJobDoc returns the document of a job. replaced is the one before, with what a newer version has
// added to it, or nil.
func newJobDoc(j *domain.Job, writeID string, replaced *jobDoc) *jobDoc {
	d := &jobDoc{
		ID: jobDocID(j.ID), PartitionKey: jobsKey, Kind: jobDocument.Name, JobKind: string(j.ID.Kind), UUID: j.ID.UUID(), Bucket: j.Bucket,
		Live: j.State == domain.JobRunning, Request: j.Request, State: string(j.State), Started: timeText(j.Started), Ended: timeText(j.Ended),
		Cursor: j.Cursor, Seen: j.Counts.Seen, Created: j.Counts.Created, Deleted: j.Counts.Deleted, Changed: j.Counts.Changed, Unchanged: j.Counts.Unchanged, Refused: j.Counts.Refused,
		Report: j.Report, Attempts: j.Attempts, Owner: j.Lease.Owner, Lease: j.Lease.Number, Until: timeText(j.Lease.Until), WriteID: writeID,
	}
	if replaced != nil {
		d.Document = replaced.Document
	}
	if !d.Live {
		d.TTL = int64(repository.JobRetention / time.Second)
	}
	for _, f := range j.Failures {
		d.Failures = append(d.Failures, failureDoc(f))
	}
	return d
}

// job returns the job of a document.
func (d *jobDoc) job() (domain.Job, error) {
	var p parser
	id, err := domain.ParseJobID(domain.JobKind(d.JobKind), d.UUID)
	p.note(err)
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
