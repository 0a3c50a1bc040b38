package ledger

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the sums of inventories are MD5
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	inventoryBatch = 500 // rows
	inventoryReads = 16  // maximum number of objects that are read concurrently
	maxChecksum    = 1 << 10
)

// An InventoryRequest identifies an inventory by its manifest, or by the location of the manifest.
type InventoryRequest struct {
	Manifest    []byte // the manifest; nil: read it from Bucket and Key
	Bucket, Key string // location of manifest.json or manifest.checksum
}

// inventoryJob is the request that an inventory job stores.
type inventoryJob struct {
	Manifest json.RawMessage `json:"manifest"`
}

// inventoryCursor is the position at which an inventory job resumes.
type inventoryCursor struct {
	File int   `json:"file"`
	Row  int64 `json:"row"` // number of rows in the file that were processed
}

// StartInventory starts a job that imports the objects of an inventory. It fails with
// ErrUnsupportedFormat if the hub does not support the format of the files, and with Invalid if the
// manifest is invalid.
//
// An inventory lists the latest versions at the time of its creation. Its events have this time, minus
// [domain.ClockMargin], so that later events of the store have later times. Objects that the
// inventory does not list are not affected. If a row is processed again after a crash, or by another
// job with the same manifest, it changes nothing: events are identified by the manifest and a digest
// of their content.
func (s *Service) StartInventory(ctx context.Context, r InventoryRequest) (domain.Job, error) {
	text := r.Manifest
	if text == nil {
		var err error
		if text, err = s.readManifest(ctx, r.Bucket, r.Key); err != nil {
			return domain.Job{}, err
		}
	}
	m, err := parseManifest(text)
	if err != nil {
		return domain.Job{}, err
	}
	if m.FileFormat == formatParquet && s.opts.ReadParquet == nil {
		return domain.Job{}, ErrUnsupportedFormat
	}
	first, err := s.openFile(ctx, m.DestinationBucket, m.Files[0].Key)
	if err != nil {
		return domain.Job{}, err
	}
	if err := first.Close(); err != nil {
		return domain.Job{}, domain.Errorf(domain.Unavailable, "read %q: %w", domain.Shorten(m.Files[0].Key), err)
	}
	return s.createJob(ctx, domain.InventoryJob, m.SourceBucket, inventoryJob{text})
}

// readManifest reads a manifest. If the key names manifest.checksum, which has the MD5 sum of the
// manifest, readManifest reads manifest.json in the same folder and verifies it.
func (s *Service) readManifest(ctx context.Context, bucket, key string) ([]byte, error) {
	at, hasSum := strings.CutSuffix(key, ".checksum")
	if !hasSum {
		return s.readFile(ctx, bucket, key, maxManifest)
	}
	sum, err := s.readFile(ctx, bucket, key, maxChecksum)
	if err != nil {
		return nil, err
	}
	text, err := s.readFile(ctx, bucket, at+".json", maxManifest)
	if err != nil {
		return nil, err
	}
	got := md5.Sum(text) //nolint:gosec // the sums of inventories are MD5
	if want := string(bytes.TrimSpace(sum)); !strings.EqualFold(hex.EncodeToString(got[:]), want) {
		return nil, domain.Errorf(domain.Invalid, "manifest %q has the MD5 %x, and its checksum says %q", domain.Shorten(at+".json"), got, domain.Shorten(want))
	}
	return text, nil
}

// An inventory is the state of one run of an inventory job.
type inventory struct {
	*task
	manifest  *manifest
	digest    string // digest of the manifest
	createdAt time.Time
	at        inventoryCursor
	done      domain.Job // draft of the job that includes this batch in its counts
	batch     []inventoryRow
}

// runInventory ingests the rows of all files, beginning at the job's cursor.
func (t *task) runInventory(ctx context.Context) error {
	var request inventoryJob
	if err := json.Unmarshal([]byte(t.job.Request), &request); err != nil {
		return domain.Errorf(domain.Damaged, "request of the inventory: %w", err)
	}
	m, err := parseManifest(request.Manifest)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(request.Manifest)
	v := &inventory{task: t, manifest: m, digest: hex.EncodeToString(sum[:10])}
	if v.createdAt, err = m.createdAt(); err != nil {
		return err
	}
	if t.job.Cursor != "" {
		if err := json.Unmarshal([]byte(t.job.Cursor), &v.at); err != nil {
			return domain.Errorf(domain.Damaged, "cursor of the inventory: %w", err)
		}
	}
	v.beginBatch()
	for v.at.File < len(m.Files) {
		if err := v.readRows(ctx, &m.Files[v.at.File]); err != nil {
			return err
		}
		v.at = inventoryCursor{File: v.at.File + 1}
		if err := v.storeBatch(ctx); err != nil {
			return err
		}
	}
	return t.completeJob(ctx)
}

// beginBatch begins an empty batch.
func (v *inventory) beginBatch() {
	v.done = v.job.Draft()
	v.batch = v.batch[:0]
}

// readRows adds the rows of a file to the batch, and stores the batch whenever it is full.
func (v *inventory) readRows(ctx context.Context, f *manifestFile) error {
	var row int64
	for r, err := range v.readRecords(ctx, v.manifest, f) {
		if err != nil {
			return err
		}
		if row++; row <= v.at.Row {
			continue
		}
		v.addRecord(r)
		if row-v.at.Row == inventoryBatch {
			v.at.Row = row
			if err := v.storeBatch(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// addRecord adds a row to the batch, unless the row describes an older version of its object.
func (v *inventory) addRecord(r fileRecord) {
	v.done.Counts.Seen++
	row, err := parseRecord(r, v.job.Bucket)
	switch {
	case err != nil:
		v.done.AddFailure(domain.Shorten(r[keyColumn]), err.Error())
	case row.isLatest:
		v.batch = append(v.batch, row)
	default:
		v.done.Counts.Unchanged++
	}
}

// storeBatch ingests the events of the batch, and then stores the cursor.
func (v *inventory) storeBatch(ctx context.Context) error {
	if err := v.renewOldLease(ctx); err != nil {
		return err
	}
	reports, err := v.compareBatch(ctx)
	if err != nil {
		return err
	}
	if err := v.ingestReports(ctx, reports, &v.done); err != nil {
		return err
	}
	text, err := json.Marshal(v.at)
	if err != nil {
		return err
	}
	v.job.Counts, v.job.Failures, v.job.Cursor = v.done.Counts, v.done.Failures, string(text)
	if err := v.saveProgress(ctx); err != nil {
		return err
	}
	v.beginBatch()
	return nil
}

// compareBatch returns events for the differences between the batch and the known objects.
func (v *inventory) compareBatch(ctx context.Context) (reports []repository.ObjectReport, err error) {
	objects, errs := make([]domain.Object, len(v.batch)), make([]error, len(v.batch))
	var wait sync.WaitGroup
	for worker := range inventoryReads {
		wait.Go(func() {
			for i := worker; i < len(v.batch); i += inventoryReads {
				objects[i], errs[i] = v.readObject(ctx, v.batch[i].name)
			}
		})
	}
	wait.Wait()
	for i := range v.batch {
		row := &v.batch[i]
		var events []domain.ObjectEvent
		err := errs[i]
		if err == nil {
			events, err = v.eventsOfListing(ctx, &objects[i], &row.ListedObject, v.createdAt)
		}
		if err != nil {
			if err := v.skipObject(ctx, &v.done, row.name.Key(), err); err != nil {
				return nil, err
			}
			continue
		}
		// An event of another version would hide a known version. That could be wrong, because an
		// inventory may lack versions that were stored shortly before it was created.
		if slices.ContainsFunc(events, func(e domain.ObjectEvent) bool { return e.Version != row.Version }) {
			events = nil
		}
		if len(events) == 0 {
			v.done.Counts.Unchanged++
		}
		for _, e := range events {
			e.Carrier = domain.Carrier{Message: "inventory/" + v.digest + "/" + digestOf(&e)}
			reports = append(reports, repository.ObjectReport{Name: row.name, ObjectEvent: e})
		}
	}
	return reports, nil
}
