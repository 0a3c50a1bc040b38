package subscribe

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Dequeues manages the requests because of which subscriptions to [domain.DequeuedTopic] receive
// notices of Dequeues.
type Dequeues struct {
	Requests    repository.DequeueRequests
	Definitions repository.Definitions
}

// Request makes the hub publish each later Dequeue of d's owner. It does nothing if d is not a
// subscription to [domain.DequeuedTopic]. The call may be repeated. It adds missing requests: a
// failover of the database account may have lost requests, and a new group of domains has no request
// yet. Request fails with NotFound if the subscription was deleted during the call.
func (r *Dequeues) Request(ctx context.Context, d *repository.Definition) error {
	if d.Topic != domain.DequeuedTopic {
		return nil
	}
	changed, err := r.Requests.RequestDequeues(ctx, d.Owner, d.ID)
	if err != nil || !changed {
		return err
	}
	// If the subscription was deleted before this read, the deletion may have withdrawn requests
	// before the new request was stored. So the new request is withdrawn here. A later deletion
	// withdraws it itself.
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
