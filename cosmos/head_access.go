package cosmos

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// readHead returns the head of recipient, or an empty head before the first Save.
func (c *call) readHead(ctx context.Context, recipient domain.ActorID) (*head, error) {
	h, err := c.readHeadByKey(ctx, headKey(recipient))
	if err == nil {
		c.r.known.observeHead(recipient, h)
	}
	return h, err
}

func (c *call) readHeadByKey(ctx context.Context, key string) (*head, error) {
	h := &head{}
	etag, err := c.Read(ctx, c.r.db.catalog, key, headID, h)
	if client.IsNotFound(err) {
		return &head{ID: headID, PartitionKey: key}, nil
	}
	if err != nil {
		return nil, err
	}
	h.etag = etag
	return h, nil
}
