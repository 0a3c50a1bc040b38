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

	maxLooks  = 2_000  // rows that a page looks at
	maxCounts = 10_000 // rows that a count looks at
	maxChunk  = 500    // objects that are read at the same time

	// bucketLooks is the number of rows that each bucket adds to the count of rows, because the
	// store queries each shard of the bucket.
	bucketLooks = 50
)

// A Query asks for a page of rows.
type Query struct {
	Filter
	AnyOrder bool // list the objects of a bucket in the cheapest order; default: in the order of their keys
	Limit    int  // 1 to MaxPage; default DefaultPage
	Token    string
}

// A Page is a part of a list.
type Page struct {
	Rows    []Row
	Damaged []repository.DamagedObject // objects whose rows, or some of them, are missing in the page
	Next    string                     // token of the next page; empty: this is the last one
}

// List returns a page of rows: the buckets in the order of their names, and in each the objects
// in the order of their keys and the rows of an object from the newest to the oldest. A page
// ends at its limit, or after List has looked at 2,000 rows; each bucket except the last one
// counts as 50 more rows. Then it may be empty and have a next page.
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
	w := rowWalk{service: s, filter: &q.Filter, plan: q.planQuery(), anyOrder: q.AnyOrder, at: at, limit: q.Limit, looks: maxLooks}
	if err := w.run(ctx); err != nil {
		return Page{}, err
	}
	page := Page{Rows: w.found, Damaged: w.damaged}
	if !w.isDone {
		page.Next = w.at.encodeToken()
	}
	return page, nil
}

// A Count is the number of rows that a filter selects.
type Count struct {
	Rows int64
	Next string // token that continues the count; empty: Rows are all of them
}

// Count returns how many rows a filter selects. If the store cannot count them, or there are
// more than 200 buckets, it reads up to 10,000 rows, where each bucket counts as 50 more rows,
// and the next call continues with the token.
func (s *Service) Count(ctx context.Context, f Filter, token string) (Count, error) {
	query := f.fingerprint + " count"
	at, err := parseToken(token, query)
	if err != nil {
		return Count{}, err
	}
	w := rowWalk{service: s, filter: &f, plan: f.planQuery(), anyOrder: true, at: at, looks: maxCounts, onlyCount: true}
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

// A rowWalk looks at the rows that a filter may select.
type rowWalk struct {
	service   *Service
	filter    *Filter
	plan      queryPlan
	anyOrder  bool
	onlyCount bool
	limit     int // limit for found; unused with onlyCount
	looks     int // rows that it may still look at

	at      rowPosition // where it continues
	found   []Row
	damaged []repository.DamagedObject
	counted int64
	isDone  bool // all rows were read
}

// isFull reports whether the walk has found enough rows.
func (w *rowWalk) isFull() bool { return !w.onlyCount && len(w.found) == w.limit || w.looks <= 0 }

// bucketNames returns the names of the buckets from the position on.
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

// mayHaveBucket reports whether rows of a bucket can fulfil the conditions about buckets.
func (f *Filter) mayHaveBucket(bucket string) bool {
	name, err := domain.ParseObjectName(bucket, "any")
	if err != nil {
		return false // no object has such a bucket
	}
	r := &Row{Name: name}
	fails := func(c condition) bool { return c.field == "bucket" && !c.holds(r) }
	return !slices.ContainsFunc(f.conditions, fails)
}

// countBuckets lets the store count the objects of the buckets.
func (w *rowWalk) countBuckets(ctx context.Context) error {
	return w.eachBucket(ctx, func(ctx context.Context, bucket string) (hasMore bool, err error) {
		n, err := w.service.Objects.Count(ctx, w.rangeOf(bucket))
		w.counted += n
		return false, err
	})
}

// rangeOf returns the range of objects in a bucket that the filter may select.
func (w *rowWalk) rangeOf(bucket string) repository.ObjectRange {
	return repository.ObjectRange{Bucket: bucket, Prefix: w.plan.prefix, OnlyCurrent: w.filter.OnlyCurrent, Matches: w.plan.matches, AnyOrder: w.anyOrder}
}

// run reads rows until the walk is full or all rows were read.
func (w *rowWalk) run(ctx context.Context) error { return w.eachBucket(ctx, w.runBucket) }

// eachBucket calls a function for the buckets from the position on, until the walk is full or the function reports
// that the bucket has more.
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
			w.looks -= bucketLooks
		}
		if w.isFull() && i+1 < len(buckets) {
			w.at.Bucket, w.at.Key, w.at.Below = buckets[i+1], "", nil
			return nil
		}
	}
	w.isDone = true
	return nil
}

// runBucket looks at the rows of a bucket, and reports whether it may have more.
func (w *rowWalk) runBucket(ctx context.Context, bucket string) (hasMore bool, err error) {
	if w.at.Below != nil { // the page before ended within an object
		if hasMore, err = w.lookUp(ctx, w.at.Key); hasMore || err != nil {
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
		page, err := w.service.Objects.List(ctx, r, min(chunk, w.looks))
		if err != nil {
			return false, err
		}
		damaged := page.Damaged
		for i := range page.Objects {
			if w.isFull() {
				return true, nil
			}
			for ; len(damaged) > 0 && damaged[0].Place <= i; damaged = damaged[1:] {
				w.leaveOut(bucket, damaged[0])
			}
			if hasMore, err := w.visitObject(ctx, &page.Objects[i]); hasMore || err != nil {
				return hasMore, err
			}
		}
		for _, d := range damaged {
			w.leaveOut(bucket, d)
		}
		if !page.More {
			return false, nil
		}
		r.After, w.at.Key = page.After, page.After
	}
}

// firstChunk returns how many objects are read first. If the filter selects every row, these
// fill the page.
func (w *rowWalk) firstChunk() int {
	if w.onlyCount {
		return maxChunk
	}
	return w.limit
}

// runKeys looks up the objects with the keys of the plan one by one.
func (w *rowWalk) runKeys(ctx context.Context) (hasMore bool, err error) {
	for _, key := range w.plan.keys {
		if key <= w.at.Key {
			continue
		}
		if w.isFull() {
			return true, nil
		}
		if hasMore, err := w.lookUp(ctx, key); hasMore || err != nil {
			return hasMore, err
		}
	}
	return false, nil
}

// lookUp looks at the rows of the object with a key, if there is one.
func (w *rowWalk) lookUp(ctx context.Context, key string) (hasMore bool, err error) {
	name, err := domain.ParseObjectName(w.at.Bucket, key)
	if err != nil {
		return false, nil //nolint:nilerr // no object has such a key
	}
	o, err := w.service.Objects.Object(ctx, name)
	if domain.KindOf(err) == domain.NotFound {
		w.looks--
		return false, nil
	}
	if domain.KindOf(err) == domain.Damaged {
		w.at.Key, w.at.Below = key, nil
		w.leaveOut(w.at.Bucket, repository.DamagedObject{Key: key, Err: err})
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return w.visitObject(ctx, &o)
}

// leaveOut adds an object that cannot be read to the damaged ones. The list continues with the
// others.
func (w *rowWalk) leaveOut(bucket string, d repository.DamagedObject) {
	w.looks--
	w.damaged = append(w.damaged, d)
	w.service.opts.Logger.Error("an object is damaged, and missing in a list", "bucket", bucket, "key", domain.Clip(d.Key), "error", d.Err)
}

// visitObject looks at the rows of an object, and reports whether the walk has ended within it.
func (w *rowWalk) visitObject(ctx context.Context, o *domain.Object) (hasMore bool, err error) {
	if w.at.Key != o.Name.Key() {
		w.at.Key, w.at.Below = o.Name.Key(), nil
	}
	if w.filter.OnlyCurrent {
		w.looks--
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
		limit := min(w.looks, maxChunk)
		rows, err := w.rowsBelow(ctx, o, below, limit)
		if domain.KindOf(err) == domain.Damaged {
			w.at.Below = nil
			w.leaveOut(o.Name.Bucket(), repository.DamagedObject{Key: o.Name.Key(), Err: err})
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for i := range rows {
			if w.isFull() {
				return true, nil
			}
			w.looks--
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

// rowsBelow returns up to limit rows of an object below an order, the newest first.
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

// addRow adds a selected row.
func (w *rowWalk) addRow(r Row) {
	if !w.filter.matches(&r) {
		return
	}
	w.counted++
	if !w.onlyCount {
		w.found = append(w.found, r)
	}
}
