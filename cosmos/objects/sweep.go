package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Shards implements [repository.ObjectSweeper].
func (s *Store) Shards(ctx context.Context) ([]repository.ObjectShard, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list shards: %w", err)
	}
	c := s.client.Begin("list shards")
	buckets, err := client.All[bucketDoc](ctx, c.QueryAllPartitions(s.objects, "all buckets", "SELECT * FROM c WHERE c.id = '"+shardsID+"'"))
	if err != nil {
		return nil, c.Outcome("list shards", err)
	}
	slices.SortFunc(buckets, func(a, b *bucketDoc) int { return cmp.Compare(a.Bucket, b.Bucket) })
	var shards []repository.ObjectShard
	for _, b := range buckets {
		for n := range b.Shards {
			shards = append(shards, repository.ObjectShard{Bucket: b.Bucket, Number: n})
		}
	}
	return shards, nil
}

// Forget implements [repository.ObjectSweeper].
func (s *Store) Forget(ctx context.Context, shard repository.ObjectShard, after string, limit int) (page repository.SweptObjects, err error) {
	if err := ctx.Err(); err != nil {
		return page, fmt.Errorf("sweep objects: %w", err)
	}
	if s.retention(shard.Bucket) <= 0 {
		return page, nil
	}
	c := s.client.Begin("sweep objects")
	c.SetBackground()
	p := &params{}
	text := fmt.Sprintf("SELECT TOP %d * FROM c WHERE c.id > %s ORDER BY c.id", limit, p.add(cmp.Or(after, lastRowID)))
	h := s.shard(shardKey(shard.Bucket, shard.Number))
	docs, unreadable, err := client.AllReadable[objectDoc](ctx, c.Query(s.objects, h.key, text, p.all...))
	if err != nil {
		return page, c.Outcome("sweep objects", err)
	}
	note := func(id string, err error) {
		page.Objects++
		page.After = max(page.After, id)
		if err == nil {
			return
		}
		if page.Failed++; page.Failure == nil {
			page.Failure = err
		}
	}
	for _, u := range unreadable {
		note(u.ID, u.Err)
	}
	for _, d := range docs {
		rows, isGone, err := h.forget(ctx, c.Renew(), d)
		if ctx.Err() != nil {
			return page, domain.Errorf(domain.Unavailable, "sweep objects: %w", ctx.Err())
		}
		note(d.ID, client.Classify("sweep object "+d.ID+" of "+h.key, err))
		page.Rows += int(rows)
		if isGone {
			page.ForgottenObjects++
		}
	}
	page.More = page.Objects == limit
	return page, nil
}

// forget forgets rows of the object in doc, step by step, and returns the number of forgotten rows. Each
// step is atomic and needs no write id, because a repeated step finds nothing to forget.
func (h *shard) forget(ctx context.Context, c *client.Call, doc *objectDoc) (rows int64, isGone bool, err error) {
	before, id := doc.ForgottenN, doc.ID
	var after domain.ObjectOrder
	for hasMore := true; hasMore && !isGone; {
		err = c.Retry(ctx, func() error {
			if doc == nil {
				doc = &objectDoc{}
				if _, err := c.Read(ctx, h.store.objects, h.key, id, doc); client.IsNotFound(err) {
					isGone = true
					return nil
				} else if err != nil {
					return err
				}
			}
			step, err := h.forgetStep(ctx, c, doc, after)
			doc = nil // the next step must read the document again
			if err == nil {
				rows, after, hasMore, isGone = step.rows-before, step.last, step.hasMore, step.isGone
			}
			return err
		})
		if err != nil {
			break
		}
	}
	return rows, isGone, err
}

// A forgetResult is the result of one step of forget.
type forgetResult struct {
	rows    int64 // number of rows that were forgotten
	last    domain.ObjectOrder
	hasMore bool
	isGone  bool
}

func (h *shard) forgetStep(ctx context.Context, c *client.Call, doc *objectDoc, after domain.ObjectOrder) (step forgetResult, err error) {
	object, err := doc.object()
	if err != nil {
		return step, err
	}
	now := h.store.opts.Clock()
	p, err := h.decide(ctx, c, &object, doc, nil, func(u *domain.ObjectUpdate) error {
		step.last, step.hasMore = u.Forget(h.store.retention(object.Name.Bucket()), now, after)
		return nil
	})
	if err != nil {
		return step, err
	}
	step.rows = p.changes.Object.ForgottenRows
	if p.changes.IsEmpty {
		return step, nil
	}
	step.isGone = p.changes.IsGone
	// After a step has forgotten spilled rows, the next step may forget rows in the document of the
	// object.
	step.hasMore = step.hasMore || object.Spilled > 0
	err = h.write(ctx, c, p)
	if client.IsRefused(err) {
		return step, client.ErrStale
	}
	return step, err
}

// usageSample is the number of documents of each kind that Usage reads to estimate the size of all
// documents of the kind.
const usageSample = 50

// Usage implements [repository.ObjectSweeper].
func (s *Store) Usage(ctx context.Context, shard repository.ObjectShard) (usage repository.ShardUsage, err error) {
	if err := ctx.Err(); err != nil {
		return usage, fmt.Errorf("count objects: %w", err)
	}
	c := s.client.Begin("count objects")
	c.SetBackground()
	key := shardKey(shard.Bucket, shard.Number)
	objects, err := s.countDocuments(ctx, c, key, "c.id >= '"+firstID+"'")
	if err == nil {
		usage.Objects = objects.n
		var rows documentCount
		rows, err = s.countDocuments(ctx, c, key, "c.id < '"+firstID+"'")
		usage.Rows, usage.Bytes = rows.n, objects.bytes+rows.bytes
	}
	return usage, c.Outcome("count objects", err)
}

type documentCount struct{ n, bytes int64 }

// countDocuments counts the documents of a partition that meet a condition.
func (s *Store) countDocuments(ctx context.Context, c *client.Call, key, condition string) (count documentCount, err error) {
	q := c.Query(s.objects, key, "SELECT VALUE COUNT(1) FROM c WHERE "+condition)
	for !q.IsDone() {
		items, err := q.Next(ctx, 1000)
		if err != nil {
			return count, err
		}
		for _, item := range items {
			var n int64
			if err := json.Unmarshal(item, &n); err != nil {
				return count, domain.Errorf(domain.Unknown, "count of %s: want a number: %w", key, err)
			}
			count.n += n
		}
	}
	sample := c.Query(s.objects, key, fmt.Sprintf("SELECT TOP %d * FROM c WHERE %s", usageSample, condition))
	var n, bytes int64
	for !sample.IsDone() {
		items, err := sample.Next(ctx, usageSample)
		if err != nil {
			return count, err
		}
		for _, item := range items {
			n, bytes = n+1, bytes+int64(len(item))
		}
	}
	count.bytes = count.n * bytes / max(n, 1)
	return count, nil
}
