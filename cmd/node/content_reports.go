package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

const (
	maxContentReports   = 10_000           // waiting reports
	contentReportBatch  = 64               // maximum number of reports stored in one call
	contentReportTries  = 3                // attempts to store a report before it counts as lost
	contentReportPause  = time.Second      // pause between two attempts
	contentReportsAtEnd = 2 * time.Second  // time limit for storing the queued reports when the node stops
	contentReportLimit  = 10 * time.Second // time limit of one call of the ledger
)

// A contentReports reports to the ledger which contents the embedded stores put
// and delete. Accounts on Azure report through Event Grid instead. No Put or
// Delete waits for a report: if a report cannot be stored, or the queue is
// full, the report is lost and counted as lost. A crawl of the bucket detects
// the missed changes.
type contentReports struct {
	content, exchange string // names of the buckets
	queue             chan contentReport
	clock             func() time.Time
	logger            *slog.Logger
	stored, lost      prometheus.Counter

	mu   sync.Mutex
	last int64 // last sequencer
}

// A contentReport is an event of an object, or the deletion of a folder of the hub's own content.
type contentReport struct {
	repository.ObjectReport
	folder string
	at     time.Time // time of the deletion of the folder
	number int64     // sequencer of the deletion of the folder
}

// newContentReports creates a contentReports. It returns nil if no store is
// embedded, or if the node runs without the ledger.
func newContentReports(cfg *config.Config, opts *Options, metrics prometheus.Registerer) *contentReports {
	if opts.PullOnly || !cfg.EmbeddedBlob() {
		return nil
	}
	reports := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "messagehub_content_reports_total",
		Help: "Puts and deletions of the embedded content stores: stored in the ledger of objects, or lost until a crawl.",
	}, []string{"outcome"})
	metrics.MustRegister(reports)
	r := &contentReports{
		content: contentBucket(cfg), exchange: exchangeBucket(cfg), queue: make(chan contentReport, maxContentReports),
		clock: opts.Clock, logger: opts.Logger,
		stored: reports.WithLabelValues("stored"), lost: reports.WithLabelValues("lost"),
	}
	if r.clock == nil {
		r.clock = time.Now
	}
	return r
}

// blobChanged returns the function that an embedded account calls for each
// change of a blob.
func (r *contentReports) blobChanged() func(embedded.BlobEvent) {
	if r == nil {
		return nil
	}
	return func(e embedded.BlobEvent) {
		sequencer, err := domain.ParseSequencer(domain.OpaqueSequencer, e.Sequencer)
		if err != nil {
			r.countLost(e.Blob, err)
			return
		}
		event := domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: sequencer, Time: e.Time}
		event.Reason = domain.CreatedPut
		if e.Type == embedded.BlobDeleted {
			event.Type, event.Reason = domain.ObjectDeleted, domain.DeletedByRequest
		} else {
			event.Size, event.LastModified = &e.Size, e.Time
		}
		event.ETag = domain.QuoteETag(e.ETag)
		r.reportEvent(r.exchange, e.Blob, event)
	}
}

// wrapContent returns a store that forwards calls to content and reports changes
// to r.
func (r *contentReports) wrapContent(content repository.Content) repository.Content {
	if r == nil {
		return content
	}
	return &reportedContent{content, r}
}

// reportEvent puts an event into the queue.
func (r *contentReports) reportEvent(bucket, key string, e domain.ObjectEvent) {
	name, err := domain.ParseObjectName(bucket, key)
	if err != nil {
		r.countLost(key, err)
		return
	}
	r.enqueue(contentReport{ObjectReport: repository.ObjectReport{Name: name, ObjectEvent: e}})
}

func (r *contentReports) enqueue(report contentReport) {
	select {
	case r.queue <- report:
	default:
		r.lost.Inc()
	}
}

// nextStamp returns the current time, and a number for an event: the time in
// nanoseconds, increased if necessary so that it exceeds the previous number.
func (r *contentReports) nextStamp() (time.Time, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.clock().UTC()
	r.last = max(r.last+1, at.UnixNano())
	return at, r.last
}

// ownEvent returns an event of the hub's own content. Its sequencer has the
// format of an Azure account.
func ownEvent(typ domain.ObjectEventType, reason domain.ObjectReason, at time.Time, number int64) domain.ObjectEvent {
	sequencer, err := domain.ParseSequencer(domain.OpaqueSequencer, fmt.Sprintf("%048X", number))
	if err != nil {
		panic(err) // impossible: a hexadecimal number is a valid sequencer
	}
	e := domain.ObjectEvent{Type: typ, Sequencer: sequencer, Time: at}
	e.Reason = reason
	return e
}

// run stores reports until ctx ends. Then it stores the queued reports, for at
// most contentReportsAtEnd.
func (r *contentReports) run(ctx context.Context, objects repository.Objects) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(contentReportsAtEnd, cancel) })()
	for work.Err() == nil {
		select {
		case report := <-r.queue:
			r.storeWaiting(work, objects, report)
			continue
		default:
		}
		select {
		case report := <-r.queue:
			r.storeWaiting(work, objects, report)
		case <-ctx.Done():
			return
		}
	}
	r.lost.Add(float64(len(r.queue)))
}

// storeWaiting stores a report, and the reports queued behind it, in one batch.
// The deletion of a folder ends the batch, because earlier reports about the
// folder's objects must be stored first.
func (r *contentReports) storeWaiting(ctx context.Context, objects repository.Objects, report contentReport) {
	var batch []repository.ObjectReport
	for {
		if report.folder != "" {
			r.store(ctx, objects, batch)
			r.storeFolder(ctx, objects, report)
			return
		}
		if batch = append(batch, report.ObjectReport); len(batch) == contentReportBatch {
			break
		}
		select {
		case report = <-r.queue:
			continue
		default:
		}
		break
	}
	r.store(ctx, objects, batch)
}

// store stores a batch. It attempts to store each event up to
// contentReportTries times; then the event counts as lost.
func (r *contentReports) store(ctx context.Context, objects repository.Objects, batch []repository.ObjectReport) {
	var last error
	for try := 0; len(batch) > 0 && try < contentReportTries; try++ {
		if try > 0 && !waitFor(ctx, contentReportPause) {
			break
		}
		batch, last = r.storeOnce(ctx, objects, batch)
	}
	if len(batch) == 0 {
		return
	}
	r.lost.Add(float64(len(batch)))
	r.logger.LogAttrs(ctx, slog.LevelWarn, "the ledger of objects misses changes of the hub's own contents; crawl the bucket",
		slog.String("bucket", batch[0].Name.Bucket()), slog.Int("changes", len(batch)), slog.Any("error", last))
}

// storeOnce tries to store a batch. It returns the reports that failed, and the
// last error.
func (r *contentReports) storeOnce(ctx context.Context, objects repository.Objects, batch []repository.ObjectReport) (failed []repository.ObjectReport, last error) {
	ctx, cancel := context.WithTimeout(ctx, contentReportLimit)
	defer cancel()
	results, err := objects.Ingest(ctx, batch)
	if err != nil {
		return batch, err
	}
	for i := range results {
		if results[i].Err != nil {
			failed, last = append(failed, batch[i]), results[i].Err
		}
	}
	r.stored.Add(float64(len(batch) - len(failed)))
	return failed, last
}

// storeFolder stores the deletion of all objects in a folder that the ledger
// knows.
func (r *contentReports) storeFolder(ctx context.Context, objects repository.Objects, report contentReport) {
	in := repository.ObjectRange{Bucket: r.content, Prefix: report.folder + "/", OnlyCurrent: true}
	for more := true; more; {
		page, err := objects.List(ctx, in, contentReportBatch)
		if err != nil {
			r.countLost(report.folder, err)
			return
		}
		batch := make([]repository.ObjectReport, 0, len(page.Objects))
		for i := range page.Objects {
			batch = append(batch, repository.ObjectReport{
				Name: page.Objects[i].Name, ObjectEvent: ownEvent(domain.ObjectDeleted, domain.DeletedByRequest, report.at, report.number),
			})
		}
		r.store(ctx, objects, batch)
		more, in.After = page.More, page.After
	}
}

func (r *contentReports) countLost(what string, err error) {
	r.lost.Inc()
	r.logger.Warn("a change of the hub's own contents is not in the ledger of objects; crawl the bucket", "object", what, "error", err)
}

// waitFor waits for d. It returns false if ctx ended first.
func waitFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// A reportedContent is a Content that reports each successful Put and deletion.
type reportedContent struct {
	repository.Content
	reports *contentReports
}

// Put implements repository.Content.
func (c *reportedContent) Put(ctx context.Context, name string, from io.Reader) error {
	counted := &countingReader{from: from}
	err := c.Content.Put(ctx, name, counted)
	if err == nil {
		at, number := c.reports.nextStamp()
		e := ownEvent(domain.ObjectCreated, domain.CreatedPut, at, number)
		e.Size, e.LastModified = &counted.n, at
		c.reports.reportEvent(c.reports.content, name, e)
	}
	return err
}

// Delete implements repository.Content.
func (c *reportedContent) Delete(ctx context.Context, name string) error {
	err := c.Content.Delete(ctx, name)
	if err == nil {
		at, number := c.reports.nextStamp()
		c.reports.reportEvent(c.reports.content, name, ownEvent(domain.ObjectDeleted, domain.DeletedByRequest, at, number))
	}
	return err
}

// DeleteFolder implements repository.Content.
func (c *reportedContent) DeleteFolder(ctx context.Context, folder string) error {
	err := c.Content.DeleteFolder(ctx, folder)
	if err == nil {
		at, number := c.reports.nextStamp()
		c.reports.enqueue(contentReport{folder: folder, at: at, number: number})
	}
	return err
}

// A countingReader counts the bytes read from it.
type countingReader struct {
	from io.Reader
	n    int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.n += int64(n)
	return n, err
}
