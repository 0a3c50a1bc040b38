package objects

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// History implements [repository.Objects].
func (s *Store) History(ctx context.Context, name domain.ObjectName, below domain.ObjectOrder, limit int) ([]domain.ObjectRow, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	c := s.client.Begin("read history")
	rows, err := s.readHistory(ctx, c, name, below, limit)
	return rows, c.Outcome("read history", err)
}

func (s *Store) readHistory(ctx context.Context, c *client.Call, name domain.ObjectName, below domain.ObjectOrder, limit int) ([]domain.ObjectRow, error) {
	d, err := s.readObject(ctx, c, name)
	if err != nil {
		return nil, err
	}
	o, err := d.object()
	if err != nil {
		return nil, err
	}
	var rows []domain.ObjectRow
	for _, r := range slices.Backward(o.Rows) {
		if len(rows) == limit {
			break
		}
		if below == (domain.ObjectOrder{}) || r.Order().Compare(below) < 0 {
			rows, below = append(rows, r), r.Order()
		}
	}
	if len(rows) == limit || o.Spilled == 0 {
		return rows, nil
	}
	p := &params{}
	where := "c.object = " + p.add(d.ID) + " AND c.kind = 'row'"
	if below != (domain.ObjectOrder{}) {
		where += " AND c['order'] < " + p.add(orderText(below))
	}
	text := fmt.Sprintf("SELECT TOP %d * FROM c WHERE %s ORDER BY c['order'] DESC", limit-len(rows), where)
	docs, err := client.All[rowDoc](ctx, c.Query(s.objects, d.PartitionKey, text, p.all...))
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		r, err := d.row()
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
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

// list merges the objects of all shards.
func (s *Store) list(ctx context.Context, c *client.Call, r repository.ObjectRange, limit int) (page repository.ObjectPage, err error) {
	shards, err := s.shardsOf(ctx, c, r.Bucket)
	if err != nil {
		return page, err
	}
	p := &params{}
	from, to := idRange(r.Prefix)
	where := "c.id >= " + p.add(from)
	if to != "" {
		where += " AND c.id < " + p.add(to)
	}
	if r.After != "" {
		where += " AND c.id > " + p.add(objectID(r.After))
	}
	if r.UpTo != "" {
		where += " AND c.id <= " + p.add(objectID(r.UpTo))
	}
	if r.OnlyCurrent {
		where += " AND c.live = true"
	}
	text := fmt.Sprintf("SELECT TOP %d * FROM c WHERE %s ORDER BY c.id", limit+1, where)
	var docs []*objectDoc
	for shard := range shards {
		found, err := client.All[objectDoc](ctx, c.Query(s.objects, shardKey(r.Bucket, shard), text, p.all...))
		if err != nil {
			return page, err
		}
		docs = append(docs, found...)
	}
	slices.SortFunc(docs, func(a, b *objectDoc) int { return cmp.Compare(a.ID, b.ID) })
	if len(docs) > limit {
		docs = docs[:limit]
		page.More, page.After = true, docs[limit-1].Key
	}
	for _, d := range docs {
		if !strings.HasPrefix(d.Key, r.Prefix) {
			continue // the id has only the first part of a long key
		}
		o, err := d.object()
		if err != nil {
			return page, err
		}
		page.Objects = append(page.Objects, o)
	}
	return page, nil
}
