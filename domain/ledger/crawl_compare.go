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
	knownPageSize   = 1100 // maximum number of known objects in one read; if the store is unchanged, one read covers a page
	historyPageSize = 1000 // maximum number of rows in one read
	ingestSize      = 200  // number of events after which a batch is stored
)

// A comparison finds the differences between a page of a listing and the known objects.
type comparison struct {
	*task
	page    *crawlPage
	short   []repository.SourceObject // listed objects whose keys have at most OrderedKey bytes; the repository orders them like the listing
	long    map[string]bool           // keys on the page that have more than OrderedKey bytes
	skipped map[string]bool           // keys of objects that were skipped
	batch   []repository.ObjectReport
	done    domain.Job // draft of the job that includes this page in its counts
}

// comparePage compares a page with the known objects whose keys follow after, and stores events for
// the differences.
func (t *task) comparePage(ctx context.Context, prefix, after string, page *crawlPage) error {
	c := &comparison{task: t, page: page, long: make(map[string]bool), skipped: make(map[string]bool), done: t.job.Draft()}
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

// mergeRange compares the known objects in a range with the listed objects, in the order of their
// keys.
func (c *comparison) mergeRange(ctx context.Context, r repository.ObjectRange) error {
	if r.UpTo != "" && r.UpTo <= r.After {
		return nil // all keys on the page are longer than OrderedKey
	}
	for {
		known, err := c.Objects.List(ctx, r, knownPageSize)
		if err != nil {
			return err
		}
		for _, d := range known.Damaged {
			if err := c.skipObject(ctx, d.Key, d.Err); err != nil {
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
		if err := c.renewOldLease(ctx); err != nil {
			return err
		}
	}
}

// compareBefore compares the listed objects before key, or all remaining listed objects if key is
// empty. These objects are unknown, or have no current row.
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

// compareKnown compares the listed objects that precede the known object o, and then o itself.
func (c *comparison) compareKnown(ctx context.Context, o *domain.Object) error {
	key := o.Name.Key()
	if len(key) > repository.OrderedKey {
		return c.compareLong(ctx, o)
	}
	if err := c.compareBefore(ctx, key); err != nil {
		return err
	}
	if len(c.short) == 0 || c.short[0].Key != key {
		return c.compareObject(ctx, o, nil, c.page.requested)
	}
	listed := &c.short[0]
	c.short = c.short[1:]
	return c.compareObject(ctx, o, listed, c.page.requested)
}

// compareByName reads the known object that has the same name as listed, and compares the two.
func (c *comparison) compareByName(ctx context.Context, listed *repository.SourceObject) error {
	name, err := domain.ParseObjectName(c.job.Bucket, listed.Key)
	if err != nil {
		return c.skipObject(ctx, listed.Key, err)
	}
	o, err := c.readObject(ctx, name)
	if err != nil {
		return c.skipObject(ctx, listed.Key, err)
	}
	return c.compareObject(ctx, &o, listed, c.page.requested)
}

// skipObject skips an object and records the reason err in the job, once for each key. It returns
// err instead if the page must be compared again.
func (c *comparison) skipObject(ctx context.Context, key string, err error) error {
	if c.skipped[key] {
		return nil
	}
	c.skipped[key] = true
	return c.task.skipObject(ctx, &c.done, key, err)
}

// skipObject skips an object and records the reason err in the job, because a single object must
// not make the job fail. It returns err instead if the step must be repeated.
func (t *task) skipObject(ctx context.Context, done *domain.Job, key string, err error) error {
	if ctx.Err() != nil || isTransient(err) && !errors.Is(err, repository.ErrPartitionFull) {
		return err
	}
	done.AddFailure(domain.Shorten(key), err.Error())
	return nil
}

// readObject returns a known object. If the object is unknown, it returns an Object without rows.
func (t *task) readObject(ctx context.Context, name domain.ObjectName) (domain.Object, error) {
	o, err := t.Objects.Object(ctx, name)
	if domain.KindOf(err) == domain.NotFound {
		return domain.Object{Name: name}, nil
	}
	return o, err
}

// compareLong compares a known object whose key is longer than OrderedKey. If the page does not
// contain the key, a different page may contain it. So compareLong requests the object from the
// store.
func (c *comparison) compareLong(ctx context.Context, o *domain.Object) error {
	if c.long[o.Name.Key()] {
		return nil
	}
	requested := c.requestTime(o.Name.Bucket())
	_, err := c.Source.Stat(ctx, o.Name, nil)
	if domain.KindOf(err) == domain.NotFound {
		return c.compareObject(ctx, o, nil, requested)
	}
	if err != nil {
		return c.skipObject(ctx, o.Name.Key(), err)
	}
	return nil
}

// compareObject adds events for an object's differences to the batch. It stores the batch if it is
// full. listed is nil if the store does not contain the object.
func (c *comparison) compareObject(ctx context.Context, o *domain.Object, listed *repository.SourceObject, requested time.Time) error {
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
	events, err := c.eventsOfListing(ctx, o, l, requested)
	if err != nil {
		return c.skipObject(ctx, o.Name.Key(), err)
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

// eventsOfListing returns the events for an object's differences; see
// [domain.Object.EventsOfListing]. If there are differences, it also reads the rows that are stored
// outside the object's document.
func (t *task) eventsOfListing(ctx context.Context, o *domain.Object, listed *domain.ListedObject, requested time.Time) ([]domain.ObjectEvent, error) {
	rows := o.Rows
	if listed == nil && o.Current != nil { // all live rows may be stored outside; the current row is one of them
		rows = append(slices.Clip(rows), *o.Current)
	}
	events := o.EventsOfListing(domain.NewestRows(rows), listed, requested)
	if len(events) == 0 || !o.HasVersionsOutside() {
		return events, nil
	}
	newest, err := t.readNewest(ctx, o.Name)
	if domain.KindOf(err) == domain.NotFound {
		// The read was stale, or the object has been forgotten since o was read. If the object were
		// skipped, the job would end without its differences. So the step is repeated.
		err = domain.Errorf(domain.Unavailable, "object %q is no longer found: %w", domain.Shorten(o.Name.Key()), err)
	}
	if err != nil {
		return nil, err
	}
	return o.EventsOfListing(newest, listed, requested), nil
}

// readNewest reads all rows of an object, and returns the newest row of each version.
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

// digestOf returns a digest of an event without its time, because the time changes when the page is
// listed again.
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

// ingestBatch stores the events of the batch, and empties the batch.
func (c *comparison) ingestBatch(ctx context.Context) error {
	if len(c.batch) == 0 {
		return nil
	}
	if err := c.renewOldLease(ctx); err != nil {
		return err
	}
	err := c.ingestReports(ctx, c.batch, &c.done)
	c.batch = c.batch[:0]
	return err
}

// ingestReports stores events, and adds the results to the counts of done.
func (t *task) ingestReports(ctx context.Context, reports []repository.ObjectReport, done *domain.Job) error {
	results, err := t.Objects.Ingest(ctx, reports)
	if err != nil {
		return err
	}
	for i, r := range results {
		switch {
		case r.Err != nil:
			key := reports[i].Name.Key()
			if err := t.skipObject(ctx, done, key, r.Err); err != nil {
				return fmt.Errorf("store what was found of key %q: %w", domain.Shorten(key), err)
			}
		case r.Outcome == domain.ObjectTooOld:
			done.AddFailure(domain.Shorten(reports[i].Name.Key()), "what was found is older than objects.retention")
		case r.Outcome != domain.ObjectStored:
		case reports[i].Type == domain.ObjectCreated:
			done.Counts.Created++
		default:
			done.Counts.Deleted++
		}
	}
	return nil
}
