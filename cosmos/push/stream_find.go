package push

import (
	"context"
	"fmt"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Find implements [repository.Streams].
func (s *Store) Find(ctx context.Context, stream domain.StreamName, id string) (domain.Position, error) {
	c := s.client.Begin("find message")
	var at domain.Position
	err := c.Retry(ctx, func() (err error) {
		at, err = s.findPosition(ctx, c, stream, id)
		return err
	})
	return at, c.Outcome(fmt.Sprintf("find a message of %s by its id", stream), err)
}

// findPosition searches for a message id in the segments that may contain unexpired ids.
func (s *Store) findPosition(ctx context.Context, c *client.Call, stream domain.StreamName, id string) (domain.Position, error) {
	h, err := s.lastHead(ctx, c, stream)
	last := h
	for err == nil && h != nil && id != "" {
		doc, err := s.findID(ctx, c, segmentKey(stream, h.segment), id)
		if err != nil {
			return domain.Position{}, err
		}
		if doc != nil {
			at, err := domain.ParsePosition(doc.Position)
			if err != nil {
				return at, domain.Errorf(domain.Damaged, "document %s of %s: %w", doc.ID, doc.PartitionKey, err)
			}
			return at, nil
		}
		if h.segment == 0 || s.opts.Clock().Sub(fromMicros(h.Opened)) >= repository.IDRetention {
			break
		}
		before := h.segment - 1
		if h, err = s.readHead(ctx, c, stream, before); err == nil && h == nil {
			err = client.ErrNotYetVisible // heads are never removed, so the read was stale
		}
		if err != nil {
			return domain.Position{}, err
		}
	}
	if err == nil {
		err = s.confirmHead(ctx, c, stream, last)
	}
	if err == nil {
		err = domain.Errorf(domain.NotFound, "the stream has no recent message with this id")
	}
	return domain.Position{}, err
}
