package cosmos

import (
	"context"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The gates of a recipient name the subscriptions for which a Dequeue writes notices. A Dequeue reads the
// gates anyway, and replaces one gate on condition that its etag is unchanged. If a request was added to
// the gates since they were read, the replacement is refused, and the Dequeue reads them again.

var _ repository.DequeueRequests = (*Repository)(nil)

// RequestDequeues implements repository.DequeueRequests. It also creates the missing gates of groups in
// which no bundle was opened yet. So a concurrent Peek that opens the first bundle of such a group cannot
// create the gate, and reads it with the request.
func (r *Repository) RequestDequeues(ctx context.Context, recipient domain.ActorID, id domain.SubscriptionID) (changed bool, err error) {
	err = r.changeDequeueRequests(ctx, "request dequeues", recipient, func(g *gate) ([]string, error) {
		if slices.Contains(g.DequeueRequests, id.String()) {
			return g.DequeueRequests, nil
		}
		if len(g.DequeueRequests) >= domain.MaxSubscriptions {
			return nil, repository.NewSubscriptionLimitError()
		}
		changed = true
		return append(slices.Clone(g.DequeueRequests), id.String()), nil
	})
	return changed, err
}

// WithdrawDequeues implements repository.DequeueRequests.
func (r *Repository) WithdrawDequeues(ctx context.Context, recipient domain.ActorID, id domain.SubscriptionID) error {
	return r.changeDequeueRequests(ctx, "withdraw dequeues", recipient, func(g *gate) ([]string, error) {
		return slices.DeleteFunc(slices.Clone(g.DequeueRequests), func(s string) bool { return s == id.String() }), nil
	})
}

// changeDequeueRequests stores the requests that change returns for each gate of recipient. change either
// adds or removes requests, so a gate whose number of requests does not change needs no write.
func (r *Repository) changeDequeueRequests(ctx context.Context, what string, recipient domain.ActorID, change func(*gate) ([]string, error)) error {
	c := r.beginCall(what)
	writeID := r.client.NewID()
	err := c.Retry(ctx, func() error {
		gates := make(map[domain.Group]*gate)
		if err := c.readGates(ctx, recipient, r.opts.Groups.All(), gates); err != nil {
			return err
		}
		var writes []batchWrite
		for _, group := range r.opts.Groups.All() {
			g := gates[group]
			requests, err := change(g)
			if err != nil {
				return err
			}
			if len(requests) == len(g.DequeueRequests) {
				continue
			}
			next := g.confirm(writeID)
			next.DequeueRequests = requests
			writes = append(writes, replaceInBatch(g.ID, g.ETag, next))
		}
		for some := range slices.Chunk(writes, maxBatch) {
			// A crash after this write may leave the change in only some of the gates. A repeated request
			// completes it.
			_, err := c.Batch(ctx, r.db.bundles, recipient.String(), false, func(b *azcosmos.TransactionalBatch) {
				for _, add := range some {
					add(b)
				}
			})
			if client.IsRefused(err) {
				return client.ErrStale
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return c.Outcome(what+" of "+recipient.String(), err)
}
