package objects

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// CheckOptions are the options of [Store.Check]. The zero value is valid.
type CheckOptions struct {
	Resume string // CheckReport.Resume of an earlier check, which this check continues; empty: check from the start

	// Progress is called after each page with the report so far; it may be nil.
	Progress func(repository.CheckReport)
}

const (
	checkedPage = 100
	maxFindings = 10_000

	// positionPrefix is the prefix of every resume position of this check. The positions of the mailbox
	// check contain no dot, so they never have this prefix.
	positionPrefix = "objects."
)

// The values of Finding.Kind.
const (
	unreadable   = "unreadable"
	shardWrong   = "shard-wrong"
	rowTwice     = "row-twice"
	rowWrong     = "row-wrong"
	rowStray     = "row-stray"
	currentWrong = "current-wrong"
	floorWrong   = "floor-wrong"
	copyWrong    = "copy-wrong"
	countWrong   = "count-wrong"
	numberWrong  = "number-wrong"
	jobWrong     = "job-wrong"
)

// IsCheckPosition reports whether resume is a position that a check of objects has reported.
func IsCheckPosition(resume string) bool { return strings.HasPrefix(resume, positionPrefix) }

// Check reads all documents, and reports violations of the invariants L1 to L6 and L8 that one state of
// the store can show. Nodes may be running. The memory that Check needs grows with the largest number of
// versions of an object, but not with the number of objects. If the account has no container for
// objects, Check finds no objects. If Check fails, the report contains the findings before the error.
//
// Check repairs nothing. A finding means that data is damaged, and that only the object stores can
// restore it, by sending their events again.
func (s *Store) Check(ctx context.Context, opts CheckOptions) (repository.CheckReport, error) {
	c := &objectChecker{store: s, opts: opts, report: repository.CheckReport{Findings: []repository.Finding{}, Resume: opts.Resume}}
	err := c.checkAll(ctx)
	if client.IsContainerMissing(err) {
		err = nil
	}
	return c.copyReport(), err
}

// An objectChecker is one run of Check.
type objectChecker struct {
	store  *Store
	opts   CheckOptions
	report repository.CheckReport
}

// checkAll checks every document of the container, in any order, and then the jobs.
func (c *objectChecker) checkAll(ctx context.Context) error {
	q := c.begin().QueryAllPartitions(c.store.objects, "all objects", "SELECT * FROM c")
	if err := c.resume(q); err != nil {
		return err
	}
	strays := newStrayCheck(c)
	for !q.IsDone() {
		items, err := q.Next(ctx, checkedPage)
		switch {
		case q.SkipDamage(err):
			c.addUnreadable(client.FailureOf(err).DamagedPartition(), "a document", client.Classify("check objects", err))
		case c.opts.Resume != "" && client.StatusOf(err) == http.StatusBadRequest:
			return errPosition(err)
		case err != nil:
			return client.Classify("check objects", err)
		}
		for _, item := range items {
			if err := c.checkDocument(ctx, q, strays, item); err != nil {
				return err
			}
		}
		c.report.Resume = ""
		if next := q.NextPage(); next != "" {
			c.report.Resume = positionPrefix + base64.RawURLEncoding.EncodeToString([]byte(next))
		}
		if c.opts.Progress != nil {
			c.opts.Progress(c.copyReport())
		}
		q.UseCall(c.begin()) // each page may use a full budget of retries
	}
	return c.checkJobs(ctx)
}

// resume makes the query continue at the position where an earlier check ended.
func (c *objectChecker) resume(q *client.Query) error {
	if c.opts.Resume == "" {
		return nil
	}
	text, isOurs := strings.CutPrefix(c.opts.Resume, positionPrefix)
	position, err := base64.RawURLEncoding.DecodeString(text)
	if !isOurs || err != nil || len(position) == 0 {
		return errPosition(fmt.Errorf("no check of objects has reported %q", domain.Shorten(c.opts.Resume)))
	}
	q.ResumeAt(string(position))
	return nil
}

func errPosition(err error) error {
	return domain.Errorf(domain.Invalid, "resume: %w; begin from the start", err)
}

func (c *objectChecker) begin() *client.Call { return c.store.client.Begin("check objects") }

// A storedDocument contains the members that every document has.
type storedDocument struct {
	PartitionKey string `json:"partitionKey"`
	ID           string `json:"id"`
	Kind         string `json:"kind"`
}

// checkDocument checks a document of the container. It ignores documents of unknown kinds, which newer
// versions store.
func (c *objectChecker) checkDocument(ctx context.Context, q *client.Query, strays *strayCheck, item []byte) error {
	var at storedDocument
	if err := json.Unmarshal(item, &at); err != nil {
		c.addUnreadable("", "a document", domain.Errorf(domain.Damaged, "decode document: %w", err))
		return nil
	}
	var err error
	switch at.Kind {
	case objectDocument.Name:
		d := &objectDoc{}
		if err = q.Decode(item, d); err == nil {
			return c.checkObject(ctx, d)
		}
		c.report.Objects++
	case rowDocument.Name, headDocument.Name:
		d := &rowDoc{}
		if err = q.Decode(item, d); err == nil {
			return strays.check(ctx, d)
		}
	case bucketDocument.Name:
		err = q.Decode(item, &bucketDoc{})
	case changeDocument.Name:
		d := &objectChangeDoc{}
		if err = q.Decode(item, d); err == nil {
			_, err = d.change()
		}
	case stateDocument.Name:
		d := &stateDoc{}
		if err = q.Decode(item, d); err == nil {
			_, err = d.change()
		}
	case sweepDocument.Name:
		err = q.Decode(item, &sweepDoc{})
	}
	if err != nil {
		c.addUnreadable(at.PartitionKey, "document "+at.ID, err)
	}
	return nil
}

const (
	maxRepeats = 6                     // limit for the repetitions of a check
	firstPause = 50 * time.Millisecond // first pause between checks; each pause is twice as long as the previous one
)

// A findingsCheck checks one object, document or set of jobs. It returns the findings, and whether the
// checked documents changed during the check.
type findingsCheck func(ctx context.Context) (found []repository.Finding, hasMoved bool, err error)

// confirm runs a check several times, and reports only the findings of every run: a stale read, or a
// write between two reads, may cause a false finding. If reads are never stale, two runs on an unchanged
// state suffice. Findings about documents that change during every run are dropped.
func (c *objectChecker) confirm(ctx context.Context, check findingsCheck) error {
	var confirmed []repository.Finding
	counted := 0 // number of runs on an unchanged state
	for n := range maxRepeats {
		if n > 0 && !client.Sleep(ctx, firstPause<<n/2+c.store.client.Jitter(firstPause<<n)) {
			return domain.Errorf(domain.Unavailable, "check objects: %w", context.Cause(ctx))
		}
		found, hasMoved, err := check(ctx)
		if err != nil {
			return client.Classify("check objects", err)
		}
		switch {
		case len(found) == 0:
			return nil
		case hasMoved:
			continue
		case counted == 0:
			confirmed = found
		default:
			confirmed = slices.DeleteFunc(found, func(f repository.Finding) bool { return !hasFinding(confirmed, &f) })
		}
		if counted++; counted > 1 && !c.store.db.ReadsMayBeStale() {
			break
		}
	}
	if counted > 1 {
		c.add(confirmed...)
	}
	return nil
}

// hasFinding reports whether all contains a finding with the Kind and Where of f. It ignores Text, which
// may contain numbers that change.
func hasFinding(all []repository.Finding, f *repository.Finding) bool {
	return slices.ContainsFunc(all, func(other repository.Finding) bool { return other.Kind == f.Kind && other.Where == f.Where })
}

// addUnreadable adds a finding about a document that is malformed or has a newer format.
func (c *objectChecker) addUnreadable(partition, where string, err error) {
	c.add(unreadableFinding(bucketOf(partition), where, err))
}

func unreadableFinding(bucket, where string, err error) repository.Finding {
	f := repository.Finding{Rule: "L1", Kind: unreadable, Bucket: bucket, Where: where, Text: err.Error(), Damage: true}
	if domain.KindOf(err) == domain.NewerFormat {
		f.Kind, f.Damage = repository.NewerFormatFinding, false
	}
	return f
}

func (c *objectChecker) add(findings ...repository.Finding) {
	c.report.Found += int64(len(findings))
	room := maxFindings - len(c.report.Findings)
	c.report.Findings = append(c.report.Findings, findings[:min(len(findings), room)]...)
}

func (c *objectChecker) copyReport() repository.CheckReport {
	report := c.report
	report.Findings = slices.Clone(report.Findings)
	return report
}

// bucketOf returns the bucket of a partition key, or "" if the partition belongs to no bucket.
func bucketOf(partition string) string {
	if bucket, ok := strings.CutPrefix(partition, "bucket|"); ok {
		return bucket
	}
	if shard, ok := strings.CutPrefix(partition, "shard|"); ok {
		_, bucket, _ := strings.Cut(shard, "|")
		return bucket
	}
	return ""
}
