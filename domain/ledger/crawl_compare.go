package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	knownPageSize   = 1100 // known objects in one read; enough for an unchanged page
	historyPageSize = 1000 // rows
	ingestSize      = 200  // events
)

// A comparison compares a page of a listing with the known objects.
type comparison struct {
	*task
	page  *crawlPage
	short []repository.SourceObject // listed objects with short keys, which the store of objects lists in the same order
	long  map[string]bool           // the other keys of the page
	left  map[string]bool           // keys of known objects that cannot be read
	batch []repository.ObjectReport
	done  domain.Job // the job, including the counts of this page
}

// comparePage compares a page with the known objects after a key, and stores the differences.
func (t *task) comparePage(ctx context.Context, prefix, after string, page *crawlPage) error {
	c := &comparison{task: t, page: page, long: make(map[string]bool), left: make(map[string]bool), done: t.job.Draft()}
	c.done.Counts.Seen += int64(len(page.objects))
	for i := range page.objects {
		o := &page.objects[i]
		if len(o.Key) <= repository.OrderedKey {
			c.short = append(c.short, *o)
			continue
		}
		c.long[o.Key] = true
		if err := c.compareByName(ctx, o); err != nil {
			return err
		}
	}
	if err := c.mergeRange(ctx, repository.ObjectRange{Bucket: t.job.Bucket, Prefix: prefix, After: after, UpTo: page.endKey(), OnlyCurrent: true}); err != nil {
		return err
	}
	if err := c.compareBefore(ctx, ""); err != nil {
		return err
	}
	if err := c.ingestBatch(ctx); err != nil {
		return err
	}
	t.job.Counts, t.job.Failures = c.done.Counts, c.done.Failures
	return nil
}

// mergeRange compares the known objects of a range with the listed ones, both in the order of
// their keys.
func (c *comparison) mergeRange(ctx context.Context, r repository.ObjectRange) error {
	if r.UpTo != "" && r.UpTo <= r.After {
		return nil // the page has only long keys
	}
	for {
		known, err := c.Objects.List(ctx, r, knownPageSize)
		if err != nil {
			return err
		}
		for _, d := range known.Damaged {
			if err := c.leaveObject(ctx, d.Key, d.Err); err != nil {
				return err
			}
		}
		for i := range known.Objects {
			if err := c.compareKnown(ctx, &known.Objects[i]); err != nil {
				return err
			}
		}
		if !known.More {
			return nil
		}
		r.After = known.After
		if err := c.prolongLate(ctx); err != nil {
			return err
		}
	}
}

// compareBefore compares the listed objects before a key or, with an empty key, all remaining
// ones. These objects are not known, or have no current row.
func (c *comparison) compareBefore(ctx context.Context, key string) error {
	for ; len(c.short) > 0 && (key == "" || c.short[0].Key < key); c.short = c.short[1:] {
		if c.short[0].Marker {
			c.done.Counts.Unchanged++
			continue
		}
		if err := c.compareByName(ctx, &c.short[0]); err != nil {
			return err
		}
	}
	return nil
}

// compareKnown compares a known object, and first the listed objects before it.
func (c *comparison) compareKnown(ctx context.Context, o *domain.Object) error {
	key := o.Name.Key()
	if len(key) > repository.OrderedKey {
		return c.compareLong(ctx, o)
	}
	if err := c.compareBefore(ctx, key); err != nil {
		return err
	}
	if len(c.short) == 0 || c.short[0].Key != key {
		return c.compareObject(ctx, o, nil, c.page.asked)
	}
	listed := &c.short[0]
	c.short = c.short[1:]
	return c.compareObject(ctx, o, listed, c.page.asked)
}

// compareByName reads a listed object, and compares it.
func (c *comparison) compareByName(ctx context.Context, listed *repository.SourceObject) error {
	name, err := domain.ParseObjectName(c.job.Bucket, listed.Key)
	if err != nil {
		return c.leaveObject(ctx, listed.Key, err)
	}
	o, err := c.readObject(ctx, name)
	if err != nil {
		return c.leaveObject(ctx, listed.Key, err)
	}
	return c.compareObject(ctx, &o, listed, c.page.asked)
}

// leaveObject skips an object and records the reason in the job. It returns the error if the
// page has to be repeated.
func (c *comparison) leaveObject(ctx context.Context, key string, err error) error {
	if c.left[key] {
		return nil
	}
	c.left[key] = true
	return c.task.leaveObject(ctx, &c.done, key, err)
}

// leaveObject records in a job that an object was skipped, because a single object must not
// make a job fail. It returns the error if the step has to be repeated.
func (t *task) leaveObject(ctx context.Context, done *domain.Job, key string, err error) error {
	if ctx.Err() != nil || isTransient(err) && !errors.Is(err, repository.ErrFull) {
		return err
	}
	done.AddFailure(domain.Clip(key), err.Error())
	return nil
}

// readObject returns an object, which has no rows if it is not known.
func (t *task) readObject(ctx context.Context, name domain.ObjectName) (domain.Object, error) {
	o, err := t.Objects.Object(ctx, name)
	if domain.KindOf(err) == domain.NotFound {
		return domain.Object{Name: name}, nil
	}
	return o, err
}

// compareLong compares a known object with a long key. If the page does not have it, another
// page may: only a request to the store shows whether it is absent.
func (c *comparison) compareLong(ctx context.Context, o *domain.Object) error {
	if c.long[o.Name.Key()] {
		return nil
	}
	asked := c.timeOfQuestion(o.Name.Bucket())
	_, err := c.Source.Stat(ctx, o.Name, nil)
	if domain.KindOf(err) == domain.NotFound {
		return c.compareObject(ctx, o, nil, asked)
	}
	if err != nil {
		return c.leaveObject(ctx, o.Name.Key(), err)
	}
	return nil
}

// compareObject adds the events for the differences of an object to the batch.
func (c *comparison) compareObject(ctx context.Context, o *domain.Object, listed *repository.SourceObject, asked time.Time) error {
	var l *domain.ListedObject
	if listed != nil {
		l = &domain.ListedObject{Version: listed.Version, Marker: listed.Marker, ObjectFacts: listed.ObjectFacts}
		if l.ETag != "" {
			l.ETag = domain.QuoteETag(l.ETag)
		}
		if l.Reason == "" {
			l.Reason = domain.Crawl
		}
	}
	events, err := c.eventsOfListing(ctx, o, l, asked)
	if err != nil {
		return c.leaveObject(ctx, o.Name.Key(), err)
	}
	if len(events) == 0 && listed != nil {
		c.done.Counts.Unchanged++
	}
	for i := range events {
		e := &events[i]
		e.Carrier = domain.Carrier{Message: "crawl/" + c.job.ID.UUID() + "/" + digestOf(e)}
		c.batch = append(c.batch, repository.ObjectReport{Name: o.Name, ObjectEvent: *e})
	}
	if len(c.batch) < ingestSize {
		return nil
	}
	return c.ingestBatch(ctx)
}

// eventsOfListing returns the events for the differences of an object; see
// [domain.Object.EventsOfListing].
func (t *task) eventsOfListing(ctx context.Context, o *domain.Object, listed *domain.ListedObject, asked time.Time) ([]domain.ObjectEvent, error) {
	events := o.EventsOfListing(domain.NewestRows(o.Rows), listed, asked)
	if len(events) == 0 || !o.HasVersionsOutside() {
		return events, nil
	}
	newest, err := t.readNewest(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	return o.EventsOfListing(newest, listed, asked), nil
}

// readNewest reads each version's newest row among all rows of an object.
func (t *task) readNewest(ctx context.Context, name domain.ObjectName) (newest []domain.ObjectRow, err error) {
	var below domain.ObjectOrder
	for {
		rows, err := t.Objects.History(ctx, name, below, historyPageSize)
		if err != nil {
			return nil, err
		}
		newest = domain.NewestRows(slices.Concat(newest, rows))
		if len(rows) < historyPageSize {
			return newest, nil
		}
		below = rows[len(rows)-1].Order()
	}
}

// digestOf returns a digest of an event without its time, which differs when a page is listed
// again.
func digestOf(e *domain.ObjectEvent) string {
	size := int64(-1)
	if e.Size != nil {
		size = *e.Size
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %v %v %d %q %q %q %q %q %q %q %d", e.Version.String(), e.Type, e.Marker, size,
		e.ETag, e.SHA256, e.StorageClass, e.ArchiveStatus, e.Reason, e.IngestID, e.Attributes, e.LastModified.UnixNano())
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// ingestBatch stores the events of the batch.
func (c *comparison) ingestBatch(ctx context.Context) error {
	if len(c.batch) == 0 {
		return nil
	}
	if err := c.prolongLate(ctx); err != nil {
		return err
	}
	err := c.ingestReports(ctx, c.batch, &c.done)
	c.batch = c.batch[:0]
	return err
}

// ingestReports stores events, and counts them.
func (t *task) ingestReports(ctx context.Context, reports []repository.ObjectReport, done *domain.Job) error {
	results, err := t.Objects.Ingest(ctx, reports)
	if err != nil {
		return err
	}
	for i, r := range results {
		switch {
		case r.Err != nil:
			key := reports[i].Name.Key()
			if err := t.leaveObject(ctx, done, key, r.Err); err != nil {
				return fmt.Errorf("store what was found of key %q: %w", domain.Clip(key), err)
			}
		case r.Outcome == domain.ObjectTooOld:
			done.AddFailure(domain.Clip(reports[i].Name.Key()), "what was found is older than objects.retention")
		case r.Outcome != domain.ObjectStored:
		case reports[i].Type == domain.ObjectCreated:
			done.Counts.Created++
		default:
			done.Counts.Deleted++
		}
	}
	return nil
}
