package domain

import (
	"slices"
	"strings"
	"time"
)

// A JobKind says what a job does.
type JobKind string

// The kinds of jobs.
const (
	CrawlJob     JobKind = "crawl"     // compares the stored objects of a bucket with the store's listing
	InventoryJob JobKind = "inventory" // stores the objects of an inventory list, which a store has produced
	PatchJob     JobKind = "patch"     // changes the attributes of many objects
)

// A JobState says whether a job is under way.
type JobState string

// The states of jobs. Only a running job changes.
const (
	JobRunning   JobState = "running"
	JobCompleted JobState = "completed"
	JobFailed    JobState = "failed"
	JobStopped   JobState = "stopped" // a request stopped the job
)

// A JobID names a job. Its UUID begins with the job's start time, so ids of one kind sort by start
// time.
type JobID struct {
	Kind JobKind
	uuid [16]byte
}

// NewJobID returns an id for a job that starts at the given time.
func NewJobID(kind JobKind, at time.Time, random [10]byte) JobID {
	return JobID{kind, [16]byte(NewWatchID(at, random))}
}

// ParseJobID reads the 36-character form of a UUID, and returns the id of a job of the given kind.
// It returns an Invalid error for other text.
func ParseJobID(kind JobKind, s string) (JobID, error) {
	uuid, err := parseUUID(string(kind)+" id", s)
	return JobID{kind, uuid}, err
}

// UUID returns the 36-character form of the UUID, in lower case.
func (id JobID) UUID() string { return formatUUID(id.uuid) }

// IsZero reports whether the id names no job.
func (id JobID) IsZero() bool { return id.uuid == [16]byte{} }

// Compare orders the ids of one kind by the start times of the jobs.
func (id JobID) Compare(other JobID) int { return strings.Compare(id.UUID(), other.UUID()) }

// A Job is a long task that processes many objects. Nodes execute it one after another, each under
// a lease. The results of all steps before its cursor are stored. If a step is repeated after a
// crash, the second run changes nothing.
type Job struct {
	ID      JobID
	Bucket  string // empty: the job is not limited to one bucket
	Request string // JSON whose form depends on the kind of job
	State   JobState
	Started time.Time
	Ended   time.Time // zero: the job has not ended
	Cursor  string    // place at which to resume, in a form that depends on the kind of job
	Counts  JobCounts
	// Report is the error of a failed job. While the job runs, it is the error of the last failed
	// attempt.
	Report   string
	Attempts int // number of failed attempts since the last completed step
	// Failures lists the objects that the job skipped, up to MaxJobFailures.
	Failures []JobFailure
	Lease    JobLease
}

// MaxJobFailures is the maximum number of skipped objects that a job lists.
const MaxJobFailures = 100

// JobCounts contains the numbers of objects that a job has processed.
type JobCounts struct {
	Seen      int64 // objects that were listed
	Created   int64 // objects for which a Created event was stored
	Deleted   int64 // objects for which a Deleted event was stored
	Changed   int64 // objects that were patched
	Unchanged int64
	Refused   int64 // objects that cannot be stored or patched
}

// A JobFailure states why a job skipped one object.
type JobFailure struct {
	Object string // id or name of the object, as in the job's request
	Reason string
}

// AddFailure counts an object that the job skipped, and lists it if there is room.
func (j *Job) AddFailure(object, reason string) {
	j.Counts.Refused++
	if len(j.Failures) < MaxJobFailures {
		j.Failures = append(j.Failures, JobFailure{object, reason})
	}
}

// Draft returns a copy of the job, to which the caller adds the counts and failures of one step. If
// the step has to be repeated, the caller drops the copy.
func (j *Job) Draft() Job {
	draft := *j
	draft.Failures = slices.Clone(j.Failures)
	return draft
}

// A JobLease names the node that executes a job. No other node may execute the job before the lease
// expires.
type JobLease struct {
	Owner  string // id of the node; "": the job was never leased
	Number int64  // number of the lease among the job's leases, from 1
	Until  time.Time
}

// IsExclusive reports whether a bucket may have at most one running job of the kind.
func (k JobKind) IsExclusive() bool { return k == CrawlJob }

// HasLongRequest reports whether jobs of kind k may have long requests, which lists of jobs omit.
func (k JobKind) HasLongRequest() bool { return k == InventoryJob }

// Claim acquires the job's lease for owner, or renews it, until the given time. It fails with
// Conflict if the job is not running, or if another owner's lease has not expired.
func (j *Job) Claim(owner string, now, until time.Time) error {
	switch l := &j.Lease; {
	case j.State != JobRunning:
		return Errorf(Conflict, "%s %s is %s", j.ID.Kind, j.ID.UUID(), j.State)
	case l.Owner != owner && now.Before(l.Until):
		return Errorf(Conflict, "%s %s has the lease of another node", j.ID.Kind, j.ID.UUID())
	case l.Owner != owner:
		*l = JobLease{Owner: owner, Number: l.Number + 1}
	}
	j.Lease.Until = until
	return nil
}

// CheckLease returns a Conflict error unless the job is running and held is its current lease.
func (j *Job) CheckLease(held JobLease) error {
	switch {
	case j.State != JobRunning:
		return Errorf(Conflict, "%s %s is %s", j.ID.Kind, j.ID.UUID(), j.State)
	case j.Lease.Number != held.Number:
		return Errorf(Conflict, "another node has taken over %s %s", j.ID.Kind, j.ID.UUID())
	}
	return nil
}

// End ends a running job. If the job has already ended, it does nothing.
func (j *Job) End(state JobState, at time.Time) {
	if j.State == JobRunning {
		j.State, j.Ended, j.Lease.Until = state, at, at
	}
}
