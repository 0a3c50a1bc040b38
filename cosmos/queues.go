package cosmos

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Queues implements repository.DataAvailable. It reads the head, the gates and the open bundles.
func (r *Repository) Queues(ctx context.Context, recipient domain.ActorID) ([]repository.Queue, error) {
	c := r.beginCall("queues")
	var queues []repository.Queue
	err := c.Retry(ctx, func() (err error) {
		queues, err = c.readQueues(ctx, recipient)
		return err
	})
	return queues, client.Classify("queues of "+recipient.String(), err)
}

func (c *call) readQueues(ctx context.Context, recipient domain.ActorID) ([]repository.Queue, error) {
	groups := c.r.opts.Groups.All()
	gates, h, err := c.readGatesAndHead(ctx, recipient, groups)
	if err != nil {
		return nil, err
	}
	queues := make([]repository.Queue, len(groups))
	g, ctx := errgroup.WithContext(ctx)
	for i, group := range groups {
		at := gates[group]
		queues[i].Group = group
		queues[i].Waiting = c.r.backlogAfterGates(h, map[domain.Group]*gate{group: at})
		if at.Open == "" {
			continue
		}
		g.Go(func() error {
			doc, err := c.readOpen(ctx, at)
			if err != nil {
				return err
			}
			b, err := doc.toBundle()
			queues[i].Open = &b
			return err
		})
	}
	return queues, g.Wait()
}

// Watermark implements repository.DataAvailable. It reads one document, the head.
func (r *Repository) Watermark(ctx context.Context, recipient domain.ActorID) (domain.Sequence, error) {
	h, err := r.beginCall("watermark").readHead(ctx, recipient)
	if err != nil {
		return 0, client.Classify("watermark of "+recipient.String(), err)
	}
	return h.Watermark, nil
}
