package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// matchMembers contains, for each field by which a list can select objects, the indexed member of the
// current row.
var matchMembers = map[domain.ObjectField]string{
	domain.FieldVersion: "version", domain.FieldSize: "size", domain.FieldETag: "eTag", domain.FieldSHA256: "sha256",
	domain.FieldStorageClass: "storageClass", domain.FieldArchiveStatus: "archiveStatus", domain.FieldReason: "reason", domain.FieldIngestID: "ingestId",
}

// List implements [repository.Objects].
func (s *Store) List(ctx context.Context, r repository.ObjectRange, limit int) (repository.ObjectPage, error) {
	if err := ctx.Err(); err != nil {
		return repository.ObjectPage{}, fmt.Errorf("list objects: %w", err)
	}
	c := s.client.Begin("list objects")
	page, err := s.list(ctx, c, r, limit)
	return page, c.Outcome("list objects", err)
}

func (s *Store) list(ctx context.Context, c *client.Call, r repository.ObjectRange, limit int) (page repository.ObjectPage, err error) {
	shards, err := s.shardsOf(ctx, c, r.Bucket)
	if err != nil || shards == 0 || limit < 1 {
		return page, err
	}
	if r.AnyOrder {
		err = s.listShards(ctx, c, r, shards, limit, &page)
	} else {
		err = s.mergeShards(ctx, c, r, shards, limit, &page)
	}
	if err != nil {
		return repository.ObjectPage{}, err
	}
	if n := len(page.Objects); n > 0 {
		page.After = page.Objects[n-1].Name.Key()
	}
	return page, nil
}

// rangeCondition returns the condition of a query for the objects of a range in one shard.
func rangeCondition(r repository.ObjectRange, after string, p *params) string {
	from, to := idRange(r.Prefix)
	where := "c.id >= " + p.add(from)
	if to != "" {
		where += " AND c.id < " + p.add(to)
	}
	if len(r.Prefix) > plainKey { // the id contains only the first bytes of a long key
		where += " AND STARTSWITH(c.key, " + p.add(r.Prefix) + ")"
	}
	if after != "" {
		where += " AND c.id > " + p.add(objectID(after))
	}
	if r.UpTo != "" {
		where += " AND c.id <= " + p.add(objectID(r.UpTo))
	}
	if !r.OnlyCurrent {
		return where
	}
	where += " AND c.live = true"
	for _, m := range r.Matches {
		where += " AND " + matchCondition(m, p)
	}
	return where
}

func matchCondition(m repository.ObjectMatch, p *params) string {
	member := "c.current." + matchMembers[m.Field]
	var parts, names []string
	for _, value := range m.Values {
		if m.Field == domain.FieldVersion && value == (domain.VersionID{}).String() {
			parts = append(parts, "NOT IS_DEFINED("+member+")")
			continue
		}
		names = append(names, p.add(value))
	}
	switch {
	case len(names) == 1:
		parts = append(parts, member+" = "+names[0])
	case len(names) > 1:
		parts = append(parts, member+" IN ("+strings.Join(names, ", ")+")")
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// A listedObject is a readable or damaged object of a list.
type listedObject struct {
	id      string
	object  domain.Object
	damaged *repository.DamagedObject // nil: the object is readable
}

// addTo adds the object to a page.
func (l *listedObject) addTo(page *repository.ObjectPage) {
	if l.damaged != nil {
		l.damaged.Position = len(page.Objects)
		page.Damaged = append(page.Damaged, *l.damaged)
		return
	}
	page.Objects = append(page.Objects, l.object)
}

// readListed decodes an object that a query returned.
func readListed(q *client.Query, doc []byte) (*listedObject, error) {
	d := &objectDoc{}
	err := q.Decode(doc, d)
	if err == nil {
		var o domain.Object
		if o, err = d.object(); err == nil {
			return &listedObject{id: d.ID, object: o}, nil
		}
	}
	var named struct{ ID, Key string }
	if domain.KindOf(err) != domain.Damaged || json.Unmarshal(doc, &named) != nil || named.ID == "" {
		return nil, err
	}
	damaged := repository.DamagedObject{Key: named.Key, Err: err}
	if named.Key == "" || objectID(named.Key) != named.ID {
		damaged.Key = named.ID
	}
	return &listedObject{id: named.ID, damaged: &damaged}, nil
}

// A shardReader reads the objects of a range in one shard, in the order of their ids.
type shardReader struct {
	query  *client.Query
	listed []*listedObject // buffer of objects that were read and not yet added to the page
}

func (s *Store) readShard(c *client.Call, r repository.ObjectRange, shard int, after string) *shardReader {
	p := &params{}
	text := "SELECT * FROM c WHERE " + rangeCondition(r, after, p) + " ORDER BY c.id"
	return &shardReader{query: c.Query(s.objects, shardKey(r.Bucket, shard), text, p.all...)}
}

// fillBuffer reads up to n objects if the buffer is empty. If the buffer remains empty, the shard has no
// more objects.
func (r *shardReader) fillBuffer(ctx context.Context, n int) error {
	for len(r.listed) == 0 && !r.query.IsDone() {
		items, err := r.query.Next(ctx, n)
		if err != nil {
			return err
		}
		for _, item := range items {
			l, err := readListed(r.query, item)
			if err != nil {
				return err
			}
			r.listed = append(r.listed, l)
		}
	}
	return nil
}

func (r *shardReader) hasMore() bool { return len(r.listed) > 0 || !r.query.IsDone() }

// takeNext removes the first object from the buffer and returns it.
func (r *shardReader) takeNext() *listedObject {
	l := r.listed[0]
	r.listed = r.listed[1:]
	return l
}

// listShards adds up to limit objects to a page, one shard after the other. It begins with the shard of
// the key r.After.
func (s *Store) listShards(ctx context.Context, c *client.Call, r repository.ObjectRange, shards, limit int, page *repository.ObjectPage) error {
	first := 0
	if r.After != "" {
		first = shardOf(r.After, shards)
	}
	for shard := first; shard < shards; shard++ {
		after := ""
		if shard == first {
			after = r.After
		}
		reader := s.readShard(c, r, shard, after)
		for reader.hasMore() {
			if len(page.Objects) == limit {
				page.More = true
				return nil
			}
			if err := reader.fillBuffer(ctx, limit-len(page.Objects)); err != nil {
				return err
			}
			for len(reader.listed) > 0 && len(page.Objects) < limit {
				reader.takeNext().addTo(page)
			}
		}
		if len(page.Objects) == limit {
			page.More = shard+1 < shards
			return nil
		}
	}
	return nil
}

// mergeShards adds up to limit objects of all shards to a page, in the order of their keys. It reads
// from each shard its share of the page and some more objects, and reads a shard again only if the page
// needs more objects of the shard.
func (s *Store) mergeShards(ctx context.Context, c *client.Call, r repository.ObjectRange, shards, limit int, page *repository.ObjectPage) error {
	share := (limit + shards - 1) / shards
	if shards > 1 {
		share += 1 + int(2*math.Sqrt(float64(share)))
	}
	readers := make([]*shardReader, shards)
	g, all := errgroup.WithContext(ctx)
	for shard := range readers {
		readers[shard] = s.readShard(c, r, shard, r.After)
		g.Go(func() error { return readers[shard].fillBuffer(all, min(share, limit)) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for len(page.Objects) < limit {
		var first *shardReader
		for _, reader := range readers {
			if err := reader.fillBuffer(ctx, min(share, limit-len(page.Objects))); err != nil {
				return err
			}
			if len(reader.listed) > 0 && (first == nil || cmp.Compare(reader.listed[0].id, first.listed[0].id) < 0) {
				first = reader
			}
		}
		if first == nil {
			return nil
		}
		first.takeNext().addTo(page)
	}
	page.More = slices.ContainsFunc(readers, (*shardReader).hasMore)
	return nil
}

// Count implements [repository.Objects].
func (s *Store) Count(ctx context.Context, r repository.ObjectRange) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("count objects: %w", err)
	}
	c := s.client.Begin("count objects")
	n, err := s.count(ctx, c, r)
	return n, c.Outcome("count objects", err)
}

func (s *Store) count(ctx context.Context, c *client.Call, r repository.ObjectRange) (total int64, err error) {
	shards, err := s.shardsOf(ctx, c, r.Bucket)
	if err != nil {
		return 0, err
	}
	counts := make([]int64, shards)
	g, ctx := errgroup.WithContext(ctx)
	for shard := range counts {
		g.Go(func() (err error) {
			counts[shard], err = s.countShard(ctx, c, r, shard)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	for _, n := range counts {
		total += n
	}
	return total, nil
}

// countShard counts the objects of a range in a shard. Each result page contains a part of the count.
func (s *Store) countShard(ctx context.Context, c *client.Call, r repository.ObjectRange, shard int) (total int64, err error) {
	p := &params{}
	text := "SELECT VALUE COUNT(1) FROM c WHERE " + rangeCondition(r, "", p)
	q := c.Query(s.objects, shardKey(r.Bucket, shard), text, p.all...)
	for !q.IsDone() {
		items, err := q.Next(ctx, 1000)
		if err != nil {
			return 0, err
		}
		for _, item := range items {
			var n int64
			if err := json.Unmarshal(item, &n); err != nil {
				return 0, domain.Errorf(domain.Unavailable, "count objects: %w", err)
			}
			total += n
		}
	}
	return total, nil
}

// Buckets implements [repository.Objects].
func (s *Store) Buckets(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list buckets: %w", err)
	}
	c := s.client.Begin("list buckets")
	docs, err := client.All[bucketDoc](ctx, c.QueryAllPartitions(s.objects, shardsID, "SELECT * FROM c WHERE c.shards > 0"))
	if err != nil {
		return nil, c.Outcome("list buckets", err)
	}
	buckets := make([]string, len(docs))
	for i, d := range docs {
		buckets[i] = d.Bucket
	}
	slices.Sort(buckets)
	return buckets, nil
}
