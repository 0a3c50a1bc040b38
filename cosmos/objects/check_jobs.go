package objects

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// checkJobs compares the document of each job with the documents that mark it as running or contain its
// request.
func (c *objectChecker) checkJobs(ctx context.Context) error {
	return c.confirm(ctx, func(ctx context.Context) ([]repository.Finding, bool, error) {
		l := &jobsComparison{objectChecker: c, running: make(map[string]*runningDoc), requests: make(map[string]bool)}
		if err := l.read(ctx); err != nil {
			return nil, false, err
		}
		l.compare()
		return l.found, false, nil
	})
}

// A jobsComparison contains the documents of all jobs.
type jobsComparison struct {
	*objectChecker
	jobs    []*jobDoc
	running map[string]*runningDoc // documents that mark a job as running, by id of the document

	requests map[string]bool // ids of the documents with requests of jobs
	found    []repository.Finding
}

func (l *jobsComparison) addViolation(bucket, where, format string, args ...any) {
	l.found = append(l.found, repository.Finding{
		Rule: "L8", Kind: jobWrong, Bucket: bucket, Where: where, Text: fmt.Sprintf(format, args...), Damage: true,
	})
}

// read reads the documents of all jobs.
func (l *jobsComparison) read(ctx context.Context) error {
	q := l.begin().Query(l.store.objects, jobsKey, "SELECT * FROM c")
	for !q.IsDone() {
		items, err := q.Next(ctx, 1000)
		if isUnreadable(err) {
			l.found = append(l.found, unreadableFinding("", "jobs", err))
			return nil
		}
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := l.add(q.Decode, item); err != nil {
				l.found = append(l.found, unreadableFinding("", "jobs", err))
			}
		}
	}
	return nil
}

// add decodes a document and adds it to the comparison.
func (l *jobsComparison) add(decode func(doc []byte, into any) error, item []byte) error {
	var at storedDocument
	if err := decode(item, &at); err != nil {
		return err
	}
	switch at.Kind {
	case jobDocument.Name:
		d := &jobDoc{}
		err := decode(item, d)
		if err == nil {
			_, err = d.job()
		}
		if err != nil {
			return err
		}
		l.jobs = append(l.jobs, d)
	case jobsDocument.Name:
		d := &runningDoc{}
		if err := decode(item, d); err != nil {
			return err
		}
		l.running[d.ID] = d
	case requestDocument.Name:
		d := &requestDoc{}
		if err := decode(item, d); err != nil {
			return err
		}
		l.requests[d.ID] = true
	}
	return nil
}

func (l *jobsComparison) compare() {
	named := make(map[string]bool) // ids of the documents that correctly mark a job as running
	for _, d := range l.jobs {
		kind, where := domain.JobKind(d.JobKind), d.JobKind+" "+d.UUID
		if isRunning := d.State == string(domain.JobRunning); d.Live != isRunning {
			l.addViolation(d.Bucket, where, "the state of the job is %s, and live is %t", d.State, d.Live)
		}
		if id := "request." + d.UUID; d.hasSeparateRequest() && !l.requests[id] {
			l.addViolation(d.Bucket, where, "the request of the job is missing: document %s", id)
		}
		if !d.Live || !kind.IsExclusive() {
			continue
		}
		id := runningID(kind, d.Bucket)
		switch r := l.running[id]; {
		case r == nil:
			l.addViolation(d.Bucket, where, "the job runs, and document %s is missing, so a second job may run", id)
		case r.UUID != d.UUID:
			l.addViolation(d.Bucket, where, "the job runs, and %s %s of the bucket runs, too", d.JobKind, r.UUID)
		default:
			named[id] = true
		}
	}
	for _, r := range slices.SortedFunc(maps.Values(l.running), func(a, b *runningDoc) int { return cmp.Compare(a.ID, b.ID) }) {
		if !named[r.ID] {
			l.addViolation(r.Bucket, "document "+r.ID, "the document marks job %s as running, but the job does not run, so no other job can run", r.UUID)
		}
	}
}
