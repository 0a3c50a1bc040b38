package repository

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// DequeueRequests are the subscriptions that a recipient wants to be called for when it
// dequeues a bundle. While there is one, each Acknowledge of the recipient leaves a notice for
// subscribers. Any node may call any method at any time, and a call may be repeated.
type DequeueRequests interface {
	// RequestDequeues adds a subscription. Each Acknowledge of recipient that begins after it
	// returned without an error leaves a notice, on whichever node. changed is false if the
	// subscription was there already. The call fails with Invalid if recipient has
	// domain.MaxSubscriptions others.
	RequestDequeues(ctx context.Context, recipient domain.ActorID, id domain.SubscriptionID) (changed bool, err error)

	// WithdrawDequeues removes a subscription. Removing what is not there is no error.
	WithdrawDequeues(ctx context.Context, recipient domain.ActorID, id domain.SubscriptionID) error
}
