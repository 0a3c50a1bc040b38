package cosmos

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Queues implements repository.DataAvailable. It reads what a Peek reads first,
// and the open bundles.
func (r *Repository) Queues(ctx context.Context, recipient domain.ActorID) ([]repository.Queue, error) {
	o := r.begin("queues")
	var queues []repository.Queue
	err := o.startOver(ctx, func() (err error) {
		queues, err = o.queues(ctx, recipient)
		return err
	})
	return queues, classified("queues of "+recipient.String(), err)
}

func (o *operation) queues(ctx context.Context, recipient domain.ActorID) ([]repository.Queue, error) {
	groups := o.r.opts.Groups.All()
	gates, h, err := o.gatesAndHead(ctx, recipient, groups)
	if err != nil {
		return nil, err
	}
	queues := make([]repository.Queue, len(groups))
	g, ctx := errgroup.WithContext(ctx)
	for i, group := range groups {
		at := gates[group]
		queues[i].Group = group
		queues[i].Waiting = o.r.behindGates(h, map[domain.Group]*gate{group: at})
		if at.Open == "" {
			continue
		}
		g.Go(func() error {
			doc, err := o.readOpen(ctx, at)
			if err != nil {
				return err
			}
			b, err := doc.bundle()
			queues[i].Open = &b
			return err
		})
	}
	return queues, g.Wait()
}

// Watermark implements repository.DataAvailable: a point read of the head.
func (r *Repository) Watermark(ctx context.Context, recipient domain.ActorID) (domain.Sequence, error) {
	h, err := r.begin("watermark").readHead(ctx, recipient)
	if err != nil {
		return 0, classified("watermark of "+recipient.String(), err)
	}
	return h.Watermark, nil
}
