package cosmos

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// readGatesAndHead reads the two truths, side by side. A group that nothing was ever
// acknowledged in has a gate without an etag.
func (c *call) readGatesAndHead(ctx context.Context, recipient domain.ActorID, groups []domain.Group) (map[domain.Group]*gate, *head, error) {
	gates := make(map[domain.Group]*gate, len(groups))
	var h *head
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		h, err = c.readHead(ctx, recipient)
		return err
	})
	g.Go(func() error { return c.readGates(ctx, recipient, groups, gates) })
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	return gates, h, nil
}

// readGates reads the gates of groups: one by its id, several in one query.
func (c *call) readGates(ctx context.Context, recipient domain.ActorID, groups []domain.Group, gates map[domain.Group]*gate) error {
	var found []*gate
	if len(groups) == 1 {
		var g gate
		etag, err := c.Read(ctx, c.r.db.bundles, recipient.String(), gateID(groups[0]), &g)
		if err != nil && !client.IsNotFound(err) {
			return err
		}
		if err == nil {
			g.ETag = etag
			found = append(found, &g)
		}
	} else {
		var err error
		found, err = client.All[gate](ctx, c.Query(c.r.db.bundles, recipient.String(), "SELECT * FROM c WHERE c.kind = @kind",
			azcosmos.QueryParameter{Name: "@kind", Value: gateKind}))
		if err != nil {
			return err
		}
	}
	for _, group := range groups {
		gates[group] = newGate(recipient, group)
		for _, g := range found {
			if g.ID == gateID(group) {
				gates[group] = g
			}
		}
	}
	return nil
}

// confirmGates proves by conditional writes that the gates are as they were read, so
// that a bundle that none of them has open is not open. It writes those too
// that were not there, for a stale read may have missed one.
func (c *call) confirmGates(ctx context.Context, recipient domain.ActorID, gates map[domain.Group]*gate) error {
	// A crash after this write leaves the gates under their next generations, and empty gates
	// where none existed. They have the same meaning as before.
	_, err := c.Batch(ctx, c.r.db.bundles, recipient.String(), false, func(b *azcosmos.TransactionalBatch) {
		for _, group := range c.r.opts.Groups.All() {
			g := gates[group]
			putInBatch(b, g.ID, g.ETag, client.Encode(g.confirm(c.r.client.NewID())))
		}
	})
	if client.IsRefused(err) {
		return client.ErrStale
	}
	return err
}
