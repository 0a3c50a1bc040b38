package repository

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// DequeueRequests are the subscriptions to be notified when a recipient dequeues a bundle. While there
// is one, each Acknowledge of the recipient writes a notice for subscribers. Any node may call any
// method at any time, and a call may be repeated.
type DequeueRequests interface {
	// RequestDequeues adds a subscription. Each Acknowledge of recipient that begins after the call has
	// returned without an error writes a notice, on whichever node. changed is false if the
	// subscription was added before. The call fails with Invalid if recipient has
	// domain.MaxSubscriptions others.
	RequestDequeues(ctx context.Context, recipient domain.ActorID, id domain.SubscriptionID) (changed bool, err error)

	// WithdrawDequeues removes a subscription. Removing a missing one is not an error.
	WithdrawDequeues(ctx context.Context, recipient domain.ActorID, id domain.SubscriptionID) error
}
