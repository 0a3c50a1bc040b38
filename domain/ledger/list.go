package ledger

import (
	"context"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The limits of lists.
const (
	DefaultPage = 100
	MaxPage     = 1000

	maxPageRows  = 2_000  // maximum number of rows read for one page
	maxCountRows = 10_000 // maximum number of rows read for one count
	maxChunk     = 500    // maximum number of objects or rows in one read

	// bucketRows is the number of rows for which each bucket counts towards the limits of a list or
	// count, because the store queries each shard of the bucket.
	bucketRows = 50
)

// A Query selects a page of rows.
type Query struct {
	Filter
	AnyOrder bool // list a bucket's objects in the order that costs least, instead of the order of their keys
	Limit    int  // maximum number of rows, from 1 to MaxPage; default DefaultPage
	Token    string
}

// A Page is one page of a list of rows.
type Page struct {
	Rows    []Row
	Damaged []repository.DamagedObject // damaged objects, some or all of whose rows are missing on the page
	Next    string                     // token with which to request the next page; "": this is the last page
}

// List returns a page of rows, ordered by bucket and key. The rows of an object are in descending
// order. A page ends at its limit, or after List has read 2,000 rows. Each bucket except the last
// counts as 50 additional rows. So an empty page may be followed by further pages.
func (s *Service) List(ctx context.Context, q Query) (Page, error) {
	if q.Limit == 0 {
		q.Limit = DefaultPage
	}
	if q.Limit < 1 || q.Limit > MaxPage {
		return Page{}, domain.Errorf(domain.Invalid, "limit: want 1 to %d, got %d", MaxPage, q.Limit)
	}
	query := q.fingerprint
	if q.AnyOrder {
		query += " in any order"
	}
	at, err := parseToken(q.Token, query)
	if err != nil {
		return Page{}, err
	}
	w := rowWalk{service: s, filter: &q.Filter, plan: q.planQuery(), anyOrder: q.AnyOrder, at: at, limit: q.Limit, budget: maxPageRows}
	if err := w.run(ctx); err != nil {
		return Page{}, err
	}
	page := Page{Rows: w.found, Damaged: w.damaged}
	if !w.isDone {
		page.Next = w.at.encodeToken()
	}
	return page, nil
}

// A Count is the number of rows that a filter selects, or a part of that number.
type Count struct {
	Rows int64
	Next string // token with which to continue the count; "": the count is complete
}

// Count returns the number of rows that a filter selects. If the store cannot count the rows, or
// has more than 200 buckets, Count reads up to 10,000 rows, where each bucket counts as 50
// additional rows. The next call continues the count at the token.
func (s *Service) Count(ctx context.Context, f Filter, token string) (Count, error) {
	query := f.fingerprint + " count"
	at, err := parseToken(token, query)
	if err != nil {
		return Count{}, err
	}
	w := rowWalk{service: s, filter: &f, plan: f.planQuery(), anyOrder: true, at: at, budget: maxCountRows, onlyCount: true}
	count := w.run
	if w.plan.isExact && w.plan.keys == nil {
		count = w.countBuckets
	}
	if err := count(ctx); err != nil {
		return Count{}, err
	}
	counted := Count{Rows: w.counted}
	if !w.isDone {
		counted.Next = w.at.encodeToken()
	}
	return counted, nil
}

// A rowWalk reads the rows that a filter may select, and collects or counts those that it selects.
type rowWalk struct {
	service   *Service
	filter    *Filter
	plan      queryPlan
	anyOrder  bool
	onlyCount bool
	limit     int // maximum number of rows in found; unused if onlyCount is set
	budget    int // number of rows that the walk may still read

	at      rowPosition // position at which the walk continues
	found   []Row
	damaged []repository.DamagedObject
	counted int64
	isDone  bool // the walk has read all rows
}

// isFull reports whether the walk must end because it has found or read enough rows.
func (w *rowWalk) isFull() bool { return !w.onlyCount && len(w.found) == w.limit || w.budget <= 0 }

// bucketNames returns the names of the remaining buckets, beginning with the current one.
func (w *rowWalk) bucketNames(ctx context.Context) (names []string, err error) {
	all := w.plan.buckets
	if all == nil {
		if all, err = w.service.Objects.Buckets(ctx); err != nil {
			return nil, err
		}
	}
	for _, bucket := range all {
		if bucket >= w.at.Bucket && w.filter.mayHaveBucket(bucket) {
			names = append(names, bucket)
		}
	}
	return names, nil
}

// mayHaveBucket reports whether rows in the bucket can meet the conditions on the field bucket.
func (f *Filter) mayHaveBucket(bucket string) bool {
	name, err := domain.ParseObjectName(bucket, "any")
	if err != nil {
		return false // a bucket cannot have this name
	}
	r := &Row{Name: name}
	fails := func(c condition) bool { return c.field == "bucket" && !c.holds(r) }
	return !slices.ContainsFunc(f.conditions, fails)
}

// countBuckets lets the store count the objects in each bucket, and adds up the numbers.
func (w *rowWalk) countBuckets(ctx context.Context) error {
	return w.eachBucket(ctx, func(ctx context.Context, bucket string) (hasMore bool, err error) {
		n, err := w.service.Objects.Count(ctx, w.rangeOf(bucket))
		w.counted += n
		return false, err
	})
}

// rangeOf returns a range that contains all objects in the bucket that the filter may select.
func (w *rowWalk) rangeOf(bucket string) repository.ObjectRange {
	return repository.ObjectRange{Bucket: bucket, Prefix: w.plan.prefix, OnlyCurrent: w.filter.OnlyCurrent, Matches: w.plan.matches, AnyOrder: w.anyOrder}
}

// run reads rows until the walk is full or all rows were read.
func (w *rowWalk) run(ctx context.Context) error { return w.eachBucket(ctx, w.runBucket) }

// eachBucket calls do for each remaining bucket. It stops when the walk is full, or when do reports
// that the bucket has more rows.
func (w *rowWalk) eachBucket(ctx context.Context, do func(ctx context.Context, bucket string) (hasMore bool, err error)) error {
	buckets, err := w.bucketNames(ctx)
	if err != nil {
		return err
	}
	for i, bucket := range buckets {
		if bucket != w.at.Bucket {
			w.at.Bucket, w.at.Key, w.at.Below = bucket, "", nil
		}
		hasMore, err := do(ctx, bucket)
		if err != nil {
			return err
		}
		if hasMore {
			return nil
		}
		if w.plan.keys == nil {
			w.budget -= bucketRows
		}
		if w.isFull() && i+1 < len(buckets) {
			w.at.Bucket, w.at.Key, w.at.Below = buckets[i+1], "", nil
			return nil
		}
	}
	w.isDone = true
	return nil
}

// runBucket reads the rows in a bucket. hasMore reports whether the bucket may have more rows.
func (w *rowWalk) runBucket(ctx context.Context, bucket string) (hasMore bool, err error) {
	if w.at.Below != nil { // the previous page ended within an object
		if hasMore, err = w.visitKey(ctx, w.at.Key); hasMore || err != nil {
			return hasMore, err
		}
	}
	if w.plan.keys != nil {
		return w.runKeys(ctx)
	}
	r := w.rangeOf(bucket)
	r.After = w.at.Key
	for chunk := w.firstChunk(); ; chunk = min(2*chunk, maxChunk) {
		if w.isFull() {
			return true, nil
		}
		page, err := w.service.Objects.List(ctx, r, min(chunk, w.budget))
		if err != nil {
			return false, err
		}
		damaged := page.Damaged
		for i := range page.Objects {
			if w.isFull() {
				return true, nil
			}
			for ; len(damaged) > 0 && damaged[0].Position <= i; damaged = damaged[1:] {
				w.addDamaged(bucket, damaged[0])
			}
			if hasMore, err := w.visitObject(ctx, &page.Objects[i]); hasMore || err != nil {
				return hasMore, err
			}
		}
		for _, d := range damaged {
			w.addDamaged(bucket, d)
		}
		if !page.More {
			return false, nil
		}
		r.After, w.at.Key = page.After, page.After
	}
}

// firstChunk returns the number of objects to read first. If the filter selects every row, these
// objects fill the page.
func (w *rowWalk) firstChunk() int {
	if w.onlyCount {
		return maxChunk
	}
	return w.limit
}

// runKeys reads the rows of the objects whose keys the plan contains, one object after another.
func (w *rowWalk) runKeys(ctx context.Context) (hasMore bool, err error) {
	for _, key := range w.plan.keys {
		if key <= w.at.Key {
			continue
		}
		if w.isFull() {
			return true, nil
		}
		if hasMore, err := w.visitKey(ctx, key); hasMore || err != nil {
			return hasMore, err
		}
	}
	return false, nil
}

// visitKey reads the rows of the object called key, if it exists.
func (w *rowWalk) visitKey(ctx context.Context, key string) (hasMore bool, err error) {
	name, err := domain.ParseObjectName(w.at.Bucket, key)
	if err != nil {
		return false, nil //nolint:nilerr // the key is not valid, so no object has it
	}
	o, err := w.service.Objects.Object(ctx, name)
	if domain.KindOf(err) == domain.NotFound {
		w.budget--
		return false, nil
	}
	if domain.KindOf(err) == domain.Damaged {
		w.at.Key, w.at.Below = key, nil
		w.addDamaged(w.at.Bucket, repository.DamagedObject{Key: key, Err: err})
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return w.visitObject(ctx, &o)
}

// addDamaged records a damaged object. The list continues with the next object.
func (w *rowWalk) addDamaged(bucket string, d repository.DamagedObject) {
	w.budget--
	w.damaged = append(w.damaged, d)
	w.service.opts.Logger.Error("an object is damaged, and missing in a list", "bucket", bucket, "key", domain.Shorten(d.Key), "error", d.Err)
}

// visitObject reads the rows of an object. hasMore reports whether the walk ended before the
// object's last row.
func (w *rowWalk) visitObject(ctx context.Context, o *domain.Object) (hasMore bool, err error) {
	if w.at.Key != o.Name.Key() {
		w.at.Key, w.at.Below = o.Name.Key(), nil
	}
	if w.filter.OnlyCurrent {
		w.budget--
		if o.Current != nil {
			w.addRow(rowOf(o, *o.Current))
		}
		return false, nil
	}
	below, err := w.at.Below.domainOrder()
	if err != nil {
		return false, err
	}
	for !w.isFull() {
		limit := min(w.budget, maxChunk)
		rows, err := w.rowsBelow(ctx, o, below, limit)
		if domain.KindOf(err) == domain.Damaged {
			w.at.Below = nil
			w.addDamaged(o.Name.Bucket(), repository.DamagedObject{Key: o.Name.Key(), Err: err})
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for i := range rows {
			if w.isFull() {
				return true, nil
			}
			w.budget--
			below = rows[i].Order()
			w.at.Below = newRowOrder(below)
			w.addRow(rowOf(o, rows[i]))
		}
		if len(rows) < limit {
			w.at.Below = nil
			return false, nil
		}
	}
	return true, nil
}

// rowsBelow returns up to limit rows of an object that are lower than below, the newest first.
func (w *rowWalk) rowsBelow(ctx context.Context, o *domain.Object, below domain.ObjectOrder, limit int) (rows []domain.ObjectRow, err error) {
	if o.Spilled > 0 {
		return w.service.Objects.History(ctx, o.Name, below, limit)
	}
	for _, r := range slices.Backward(o.Rows) {
		if len(rows) < limit && (below == domain.ObjectOrder{} || r.Order().Compare(below) < 0) {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// addRow counts a row if the filter selects it, and adds it to found unless onlyCount is set.
func (w *rowWalk) addRow(r Row) {
	if !w.filter.matches(&r) {
		return
	}
	w.counted++
	if !w.onlyCount {
		w.found = append(w.found, r)
	}
}
