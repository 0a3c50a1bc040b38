package objects

import (
	"context"
	"fmt"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Amend implements [repository.Objects].
func (s *Store) Amend(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID, change func(domain.ObjectFacts) (domain.ObjectFacts, error)) (domain.ObjectRow, error) {
	if err := ctx.Err(); err != nil {
		return domain.ObjectRow{}, fmt.Errorf("amend object: %w", err)
	}
	c := s.client.Begin("amend object")
	row, err := s.amend(ctx, c, name, id, change)
	return row, c.Outcome("amend object", err)
}

// amend changes a row of an object in one batch, which also replaces the separate documents of a spilled
// row. The object stores the id of the write, so a retry after a lost reply detects that the change was
// made.
func (s *Store) amend(ctx context.Context, c *client.Call, name domain.ObjectName, id domain.ObjectRowID, change func(domain.ObjectFacts) (domain.ObjectFacts, error)) (domain.ObjectRow, error) {
	ids := []string{s.client.NewID()}
	var amended domain.ObjectRow
	err := c.Retry(ctx, func() error {
		doc, err := s.readObject(ctx, c, name)
		if err != nil {
			return err
		}
		object, err := doc.object()
		if err != nil {
			return err
		}
		if object.HasWrite(ids...) {
			return nil // an earlier attempt, whose reply was lost, has made the change
		}
		h := s.shard(doc.PartitionKey)
		var row *domain.ObjectRow
		p, err := h.decide(ctx, c, &object, doc, ids, func(u *domain.ObjectUpdate) (err error) {
			row, err = u.Amend(id, change)
			return err
		})
		switch {
		case err != nil:
			return err
		case row == nil:
			return noSuchRow(name)
		}
		amended = *row
		err = h.write(ctx, c, p)
		if client.IsRefused(err) {
			return client.ErrStale
		}
		return err
	})
	if err != nil {
		return domain.ObjectRow{}, err
	}
	return amended, nil
}
