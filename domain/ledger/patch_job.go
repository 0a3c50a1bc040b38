package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

const (
	patchBatch  = 100 // maximum number of rows that are patched before the cursor is stored
	patchWrites = 8   // maximum number of objects that are patched concurrently
)

// patchJob is the request that a patch job stores.
type patchJob struct {
	Query map[string][]string `json:"query"`
	Patch json.RawMessage     `json:"patch"`
}

// parseRequest returns the filter and the patch in the request. It fails with Invalid if the
// request is not valid.
func (r *patchJob) parseRequest() (f Filter, p Patch, err error) {
	if p, err = ParsePatch(r.Patch); err != nil {
		return f, p, err
	}
	if f, err = ParseFilter(r.Query); err != nil {
		return f, p, err
	}
	if !f.HasConditions() {
		return f, p, domain.Errorf(domain.Invalid, "the query has no condition on the rows to patch; to patch all rows, send key=*")
	}
	for name, values := range r.Query {
		for _, text := range append([]string{name}, values...) {
			if !utf8.ValidString(text) {
				return f, p, domain.Errorf(domain.Invalid, "%s: want UTF-8, got %q", domain.Shorten(name), domain.Shorten(text)) // the request is stored as JSON, which must be UTF-8
			}
		}
	}
	return f, p, nil
}

// StartPatch starts a job that applies a patch to the rows that a query selects. [ParseFilter] and
// [ParsePatch] define query and patch. StartPatch fails with Invalid if one of them is not valid, or
// if the query contains no condition.
//
// Each row is patched separately. If an operation of the patch fails for a row, the row is not
// changed, and the job records the reason.
//
//  1. List a page of rows. A crash has no effect.
//  2. Patch each row, and add the id of the job to the row in the same write. After a crash, some
//     rows are patched.
//  3. Store the position at which the next page begins. After a crash before this step, the page is
//     listed again, and the job skips rows that contain its id.
//
// So no row is patched twice. If a page is listed again, the job does not count a patched row that no
// longer matches the query.
func (s *Service) StartPatch(ctx context.Context, query map[string][]string, patch []byte) (domain.Job, error) {
	request := patchJob{query, patch}
	filter, _, err := request.parseRequest()
	if err != nil {
		return domain.Job{}, err
	}
	bucket := "" // all buckets
	if buckets := filter.planQuery().buckets; len(buckets) == 1 {
		bucket = buckets[0]
	}
	return s.createJob(ctx, domain.PatchJob, bucket, request)
}

// runPatch patches the selected rows, beginning at the job's cursor, which is the token of a page.
func (t *task) runPatch(ctx context.Context) error {
	var request patchJob
	if err := json.Unmarshal([]byte(t.job.Request), &request); err != nil {
		return domain.Errorf(domain.Damaged, "request of the patch: %w", err)
	}
	filter, patch, err := request.parseRequest()
	if err != nil {
		return err
	}
	for {
		page, err := t.List(ctx, Query{Filter: filter, AnyOrder: true, Limit: patchBatch, Token: t.job.Cursor})
		if err != nil {
			return err
		}
		if err := t.patchPage(ctx, patch, &page); err != nil {
			return err
		}
		if t.job.Cursor = page.Next; page.Next == "" {
			return t.completeJob(ctx)
		}
		if err := t.saveProgress(ctx); err != nil {
			return err
		}
	}
}

// patchPage patches the rows on a page, and adds the results to the job's counts.
func (t *task) patchPage(ctx context.Context, p Patch, page *Page) error {
	if err := t.renewOldLease(ctx); err != nil {
		return err
	}
	done := t.job.Draft()
	for _, d := range page.Damaged {
		done.AddFailure(domain.Shorten(d.Key), d.Err.Error())
	}
	rows := page.Rows
	for i, err := range t.patchRows(ctx, p, rows) {
		done.Counts.Seen++
		switch {
		case err == nil:
			done.Counts.Changed++
		case errors.Is(err, errUnchanged):
			done.Counts.Unchanged++
		case ctx.Err() != nil || isTransient(err):
			return err
		default:
			done.AddFailure(rows[i].RowID().String(), err.Error())
		}
	}
	t.job.Counts, t.job.Failures = done.Counts, done.Failures
	return nil
}

// patchRows patches rows of different objects concurrently, and rows of one object one after
// another. It returns an error or nil for each row.
func (t *task) patchRows(ctx context.Context, p Patch, rows []Row) []error {
	errs := make([]error, len(rows))
	objects := make(chan []int)
	var writers sync.WaitGroup
	for range patchWrites {
		writers.Go(func() {
			for places := range objects {
				for _, i := range places {
					errs[i] = t.patchRow(ctx, p, &rows[i])
				}
			}
		})
	}
	for first, end := 0, 0; first < len(rows); first = end {
		var places []int
		for ; end < len(rows) && rows[end].Name == rows[first].Name; end++ {
			places = append(places, end)
		}
		objects <- places
	}
	close(objects)
	writers.Wait()
	return errs
}

// The errors with which patchRow prevents a write.
var (
	errUnchanged = domain.Errorf(domain.Invalid, "the patch changes nothing")
	errPatched   = domain.Errorf(domain.Invalid, "the job has patched the row")
)

// patchRow patches a row, unless the job has already patched it. It fails with errUnchanged if the
// patch changes nothing.
func (t *task) patchRow(ctx context.Context, p Patch, r *Row) error {
	_, err := t.Objects.Amend(ctx, r.Name, r.ID(), func(facts domain.ObjectFacts) (domain.ObjectFacts, error) {
		if facts.HasPatch(t.job.ID) {
			return facts, errPatched
		}
		patched, err := t.Apply(p, facts)
		if err == nil && patched == facts {
			err = errUnchanged
		}
		patched.NotePatch(t.job.ID)
		return patched, err
	})
	if errors.Is(err, errPatched) {
		return nil
	}
	return err
}
