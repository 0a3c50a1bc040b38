package objects

import (
	"context"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// checkObject checks the object in d. Before it reports findings, it reads the object again to confirm
// them.
func (c *objectChecker) checkObject(ctx context.Context, d *objectDoc) error {
	c.report.Objects++
	c.report.Rows += int64(len(d.Rows)) + d.Spilled
	read := d
	return c.confirm(ctx, func(ctx context.Context) ([]repository.Finding, bool, error) {
		if read == nil {
			read = &objectDoc{}
			_, err := c.begin().Read(ctx, c.store.objects, d.PartitionKey, d.ID, read)
			switch {
			case client.IsNotFound(err):
				return nil, true, nil // a sweep has deleted the object
			case isUnreadable(err):
				return []repository.Finding{unreadableFinding(d.Bucket, whereOf(d), err)}, false, nil
			case err != nil:
				return nil, false, err
			}
		}
		l := &objectComparison{objectChecker: c, partition: d.PartitionKey, id: d.ID, bucket: d.Bucket, where: whereOf(d), doc: read}
		read = nil
		if err := l.checkAll(ctx); err != nil || len(l.found) == 0 {
			return nil, false, err
		}
		hasMoved, err := l.hasMoved(ctx)
		return l.found, hasMoved, err
	})
}

func isUnreadable(err error) bool {
	kind := domain.KindOf(client.Classify("", err))
	return err != nil && (kind == domain.Damaged || kind == domain.NewerFormat)
}

func whereOf(d *objectDoc) string { return fmt.Sprintf("object %q", domain.Shorten(d.Key)) }

// An objectComparison compares one state of an object with the invariants.
type objectComparison struct {
	*objectChecker
	partition, id string
	bucket, where string
	found         []repository.Finding

	doc        *objectDoc // nil: the document was not read
	object     domain.Object
	isReadable bool

	rows       map[domain.ObjectRowID]bool           // rows in the object
	newest     map[domain.VersionID]domain.ObjectRow // newest spilled row of each version
	copies     map[domain.VersionID]rowFields
	spilled    int64
	duplicates int64
	numbers    map[int64]bool // numbers of the generated places
	generated  int64          // number of spilled rows with a generated place
}

// addViolation adds a finding, unless the object already has a finding of the same kind.
func (l *objectComparison) addViolation(rule, kind, format string, args ...any) {
	f := repository.Finding{Rule: rule, Kind: kind, Bucket: l.bucket, Where: l.where, Text: fmt.Sprintf(format, args...), Damage: true}
	if !hasFinding(l.found, &f) {
		l.found = append(l.found, f)
	}
}

// noteUnreadable turns an error about unreadable content into a finding, and returns any other error.
func (l *objectComparison) noteUnreadable(err error) error {
	if !isUnreadable(err) {
		return err
	}
	f := unreadableFinding(l.bucket, l.where, err)
	if !hasFinding(l.found, &f) {
		l.found = append(l.found, f)
	}
	return nil
}

func (l *objectComparison) checkAll(ctx context.Context) error {
	l.rows, l.numbers = make(map[domain.ObjectRowID]bool), make(map[int64]bool)
	l.newest, l.copies = make(map[domain.VersionID]domain.ObjectRow), make(map[domain.VersionID]rowFields)
	if l.doc.Spilled > 0 {
		l.doc = nil
		if err := l.read(ctx); l.doc == nil || err != nil {
			return err // nil: a sweep has deleted the object
		}
	} else if err := l.checkInside(); err != nil {
		return err
	}
	if !l.isReadable {
		return nil
	}
	if err := l.checkShard(ctx); err != nil {
		return err
	}
	l.checkCopies()
	l.checkCurrent()
	l.checkCounts()
	return nil
}

// checkShard checks that the partition of the object belongs to the shard of its key.
func (l *objectComparison) checkShard(ctx context.Context) error {
	d := l.doc
	shards, err := l.store.shardsOf(ctx, l.begin(), d.Bucket)
	switch {
	case isUnreadable(err): // the document of the bucket is reported separately
		return nil
	case err != nil:
		return err
	case shards == 0:
		l.addViolation("L1", shardWrong, "the document with the number of shards of the bucket is missing, so readers cannot find the object")
	case d.PartitionKey != shardKey(d.Bucket, shardOf(d.Key, shards)), d.ID != objectID(d.Key):
		l.addViolation("L1", shardWrong, "the object is document %s of %s, which is not the document that readers read", d.ID, d.PartitionKey)
	}
	return nil
}

// checkInside checks the rows in the document of the object.
func (l *objectComparison) checkInside() (err error) {
	if l.object, err = l.doc.object(); err != nil {
		return l.noteUnreadable(err)
	}
	l.isReadable = true
	rows := l.object.Rows
	for i := range rows {
		r := &rows[i]
		switch {
		case l.rows[r.ID()]:
			l.addViolation("L2", rowTwice, "two rows are of event %+v", r.ID())
		case i > 0 && domain.CompareObjectRows(rows[i-1], *r) >= 0:
			l.addViolation("L4", floorWrong, "the rows in the object are not in order")
		case r.Order().Compare(l.object.Floor) <= 0:
			l.addViolation("L4", floorWrong, "the row of event %+v is in the object, and not above the floor of the object", r.ID())
		}
		l.rows[r.ID()] = true
		l.count(r)
	}
	return nil
}

// count counts a row, so that checkCounts can compare the sums with the counts in the object.
func (l *objectComparison) count(r *domain.ObjectRow) {
	l.duplicates += r.Duplicates
	if !r.IsGenerated() {
		return
	}
	if r.Number > l.object.Generated || l.numbers[r.Number] {
		l.addViolation("L6", numberWrong, "number %d of a generated place occurs twice, or is above the last number, %d", r.Number, l.object.Generated)
	}
	l.numbers[r.Number] = true
}

// read reads the object again, with its spilled rows and their copies, and checks them. Each page of the
// query returns one state of the partition, which may be stale. The query usually returns documents in
// order of creation, the object first. Documents that come before the object are checked at the end.
func (l *objectComparison) read(ctx context.Context) error {
	p := &params{}
	id := p.add(l.id)
	q := l.begin().Query(l.store.objects, l.partition, "SELECT * FROM c WHERE c.id = "+id+" OR c.object = "+id, p.all...)
	var before []*rowDoc
	for !q.IsDone() {
		items, err := q.Next(ctx, 1000)
		if err != nil {
			return l.noteUnreadable(err)
		}
		for _, item := range items {
			d, err := l.decode(q, item)
			switch {
			case err != nil:
				err = l.noteUnreadable(err)
			case d != nil && l.doc == nil:
				before = append(before, d)
			case d != nil && l.isReadable:
				l.checkSpilled(d)
			}
			if err != nil {
				return err
			}
		}
		q.UseCall(l.begin())
	}
	for _, d := range before {
		if l.isReadable {
			l.checkSpilled(d)
		}
	}
	return nil
}

// decode decodes a spilled row or a copy. If item is the object, decode checks the object and returns nil.
func (l *objectComparison) decode(q *client.Query, item []byte) (*rowDoc, error) {
	var at storedDocument
	if err := q.Decode(item, &at); err != nil {
		return nil, err
	}
	if at.ID != l.id {
		d := &rowDoc{}
		return d, q.Decode(item, d)
	}
	d := &objectDoc{}
	if err := q.Decode(item, d); err != nil {
		return nil, err
	}
	l.doc = d
	return nil, l.checkInside()
}

func (l *objectComparison) checkSpilled(d *rowDoc) {
	r, err := d.toRow()
	if err != nil {
		l.found = append(l.found, unreadableFinding(l.bucket, l.where, err))
		return
	}
	if d.Kind == headDocument.Name {
		l.copies[r.Version] = encodeRow(&r)
		if d.ID != headID(l.doc.Key, r.Version) || d.Version != versionText(r.Version) {
			l.addViolation("L4", copyWrong, "document %s is a copy for another version than %s", d.ID, r.Version)
		}
		if want := newHeadDoc(l.doc.PartitionKey, l.doc.Key, &r).Live; d.Live != nil && d.Live != want { // copies that older versions stored lack the member live
			l.addViolation("L4", copyWrong, "document %s has the value %v for live, want %v", d.ID, d.Live, want)
		}
		return
	}
	want := newRowDoc(l.doc.PartitionKey, l.doc.Key, &r)
	if d.ID != want.ID || d.Version != want.Version || d.Order != want.Order || d.Micros != want.Micros || d.IsGenerated != want.IsGenerated || d.IsAnchor != want.IsAnchor {
		l.addViolation("L2", rowWrong, "document %s has an id or members that do not match its row, of event %+v", d.ID, r.ID())
	}
	if l.rows[r.ID()] {
		l.addViolation("L2", rowTwice, "the row of event %+v is in the object and also spilled", r.ID())
	}
	if r.Order().Compare(l.object.Floor) > 0 {
		l.addViolation("L4", floorWrong, "the row of event %+v is spilled, and above the floor of the object", r.ID())
	}
	if newest, has := l.newest[r.Version]; !has || domain.CompareObjectRows(newest, r) < 0 {
		l.newest[r.Version] = r
	}
	l.spilled++
	l.count(&r)
	if r.IsGenerated() {
		l.generated++
		if r.Time.After(l.object.SpilledTo) {
			l.addViolation("L4", countWrong, "a spilled row with a generated place has the time %s, and according to the object the latest is %s", timeText(r.Time), timeText(l.object.SpilledTo))
		}
	}
}

// checkCopies checks for each version with spilled rows that its newest spilled row has a copy, and that
// the object lists the version.
func (l *objectComparison) checkCopies() {
	listed := l.object.SpilledVersions
	for v, r := range l.newest {
		if got, has := l.copies[v]; !has || got != encodeRow(&r) {
			l.addViolation("L4", copyWrong, "version %s has no copy of its newest spilled row", v)
		}
		if len(listed) < domain.MaxSpilledVersions && !slices.Contains(listed, v) {
			l.addViolation("L4", countWrong, "rows of version %s are spilled, and the object does not list the version", v)
		}
	}
	for v := range l.copies {
		if _, has := l.newest[v]; !has {
			l.addViolation("L4", copyWrong, "version %s has a copy but no spilled row", v)
		}
	}
}

// checkCurrent computes the current row from all rows and compares it with the stored row. Of the spilled
// rows, only the newest row of each version matters.
func (l *objectComparison) checkCurrent() {
	rows := slices.Clone(l.object.Rows)
	for _, r := range l.newest {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, domain.CompareObjectRows)
	var want *domain.ObjectRow
	if i := domain.CurrentRow(rows); i >= 0 {
		want = &rows[i]
	}
	switch got := l.object.Current; {
	case want == nil && got == nil:
	case want == nil:
		l.addViolation("L3", currentWrong, "the current row is that of event %+v, and according to all rows the object does not exist", got.ID())
	case got == nil || encodeRow(got) != encodeRow(want):
		l.addViolation("L3", currentWrong, "the current row is not that of event %+v, which is current according to all rows", want.ID())
	}
	if l.doc.Live != (l.doc.Current != nil) {
		l.addViolation("L3", currentWrong, "live is %t, and the existence of a current row is %t", l.doc.Live, l.doc.Current != nil)
	}
}

func (l *objectComparison) checkCounts() {
	o := &l.object
	if events := int64(len(o.Rows)) + l.spilled; o.Events != events || o.Duplicates != l.duplicates || o.Spilled != l.spilled || o.SpilledGenerated != l.generated {
		l.addViolation("L5", countWrong, "the object has %d rows with %d duplicates; %d rows are spilled, %d of them with a generated place; the counts are %d, %d, %d and %d",
			events, l.duplicates, l.spilled, l.generated, o.Events, o.Duplicates, o.Spilled, o.SpilledGenerated)
	}
	if n := int64(len(l.numbers)); n > o.Generated || o.ForgottenRows == 0 && n < o.Generated {
		l.addViolation("L6", numberWrong, "%d rows have a generated place, and the object has assigned %d numbers", n, o.Generated)
	}
}

// hasMoved reports whether the object has changed since it was read.
func (l *objectComparison) hasMoved(ctx context.Context) (bool, error) {
	var now objectDoc
	_, err := l.begin().Read(ctx, l.store.objects, l.partition, l.id, &now)
	if client.IsNotFound(err) {
		return true, nil
	}
	if isUnreadable(err) {
		return false, nil
	}
	return l.doc != nil && now.ETag != l.doc.ETag, err
}

// maxKnownObjects is the limit for the objects with spilled rows that a strayCheck caches.
const maxKnownObjects = 10_000

// A strayCheck finds spilled rows whose object does not exist or counts no spilled rows. Other spilled
// rows are checked together with their object.
type strayCheck struct {
	*objectChecker
	known map[storedDocument]bool // cache of objects that have spilled rows
}

func newStrayCheck(c *objectChecker) *strayCheck {
	return &strayCheck{c, make(map[storedDocument]bool)}
}

func (s *strayCheck) check(ctx context.Context, d *rowDoc) error {
	of := storedDocument{PartitionKey: d.PartitionKey, ID: d.Object}
	if s.known[of] {
		return nil
	}
	return s.confirm(ctx, func(ctx context.Context) ([]repository.Finding, bool, error) {
		hasSpilled, err := s.hasSpilled(ctx, of)
		if err != nil || hasSpilled {
			return nil, false, err
		}
		if _, err := s.begin().Read(ctx, s.store.objects, d.PartitionKey, d.ID, &rowDoc{}); client.IsNotFound(err) {
			return nil, true, nil // the row was deleted after the query had returned it
		} else if err != nil && !isUnreadable(err) {
			return nil, false, err
		}
		return []repository.Finding{{
			Rule: "L1", Kind: rowStray, Bucket: bucketOf(d.PartitionKey), Where: "document " + d.ID, Damage: true,
			Text: "it is a spilled row of object " + d.Object + ", which does not exist or has no spilled rows",
		}}, false, nil
	})
}

// hasSpilled reports whether an object has spilled rows. It also returns true if the object cannot be
// read, which is reported separately.
func (s *strayCheck) hasSpilled(ctx context.Context, of storedDocument) (bool, error) {
	var o objectDoc
	_, err := s.begin().Read(ctx, s.store.objects, of.PartitionKey, of.ID, &o)
	switch {
	case client.IsNotFound(err):
		return false, nil
	case err != nil && !isUnreadable(err):
		return false, err
	case err == nil && o.Spilled == 0:
		return false, nil
	}
	if len(s.known) == maxKnownObjects {
		clear(s.known)
	}
	s.known[of] = true
	return true, nil
}
