package subscribe

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Dequeues requests and withdraws the notices of Dequeues for the subscriptions to
// [domain.DequeuedTopic].
type Dequeues struct {
	Requests    repository.DequeueRequests
	Definitions repository.Definitions
}

// Request makes the hub publish each later Dequeue of the owner of d. It does nothing for a
// subscription to another topic. It may be repeated, and then adds missing requests: a failover
// of the account may have lost them, or a group of domains may be new. It fails with NotFound
// if the subscription was deleted meanwhile.
func (r *Dequeues) Request(ctx context.Context, d *repository.Definition) error {
	if d.Topic != domain.DequeuedTopic {
		return nil
	}
	changed, err := r.Requests.RequestDequeues(ctx, d.Owner, d.ID)
	if err != nil || !changed {
		return err
	}
	// A deletion before this read may have withdrawn the requests before this one was stored. A
	// deletion after it will withdraw this one.
	_, err = r.Definitions.Subscription(ctx, d.ID)
	if domain.KindOf(err) == domain.NotFound {
		if werr := r.Requests.WithdrawDequeues(ctx, d.Owner, d.ID); werr != nil {
			return werr
		}
	}
	return err
}

func (s *Service) newDequeues() *Dequeues {
	return &Dequeues{Requests: s.ports.Dequeues, Definitions: s.ports.Definitions}
}
