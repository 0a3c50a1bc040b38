package objects

import (
	"context"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
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
		r, err := d.toRow()
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// Row implements [repository.Objects].
func (s *Store) Row(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID) (domain.ObjectRow, error) {
	if err := ctx.Err(); err != nil {
		return domain.ObjectRow{}, fmt.Errorf("read row: %w", err)
	}
	c := s.client.Begin("read row")
	row, err := s.readRow(ctx, c, name, id)
	return row, c.Outcome("read row", err)
}

func (s *Store) readRow(ctx context.Context, c *client.Call, name domain.ObjectName, id domain.ObjectRowID) (domain.ObjectRow, error) {
	d, err := s.readObject(ctx, c, name)
	if err != nil {
		return domain.ObjectRow{}, err
	}
	o, err := d.object()
	if err != nil {
		return domain.ObjectRow{}, err
	}
	for _, r := range o.Rows {
		if r.ID() == id {
			return r, nil
		}
	}
	if o.Spilled == 0 {
		return domain.ObjectRow{}, noSuchRow(name)
	}
	spilled := &rowDoc{}
	if _, err = c.Read(ctx, s.objects, d.PartitionKey, rowID(name.Key(), id), spilled); client.IsNotFound(err) {
		return domain.ObjectRow{}, noSuchRow(name)
	}
	if err != nil {
		return domain.ObjectRow{}, err
	}
	return spilled.toRow()
}

func noSuchRow(name domain.ObjectName) error {
	return domain.Errorf(domain.NotFound, "object %q has no such row", domain.Shorten(name.Key()))
}
