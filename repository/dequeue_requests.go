package repository

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// DequeueRequests stores, for each recipient, the subscriptions that are notified when the recipient
// dequeues a bundle. While a recipient has such a subscription, each Acknowledge of the recipient writes
// a notice for subscribers. Any node may call any method at any time, and a call may be repeated.
type DequeueRequests interface {
	// RequestDequeues adds a subscription. Each Acknowledge of recipient, on any node, that begins after
	// RequestDequeues returned without an error writes a notice. changed is false if the subscription
	// was added before. The call fails with Invalid if recipient has domain.MaxSubscriptions other
	// subscriptions.
	RequestDequeues(ctx context.Context, recipient domain.ActorID, id domain.SubscriptionID) (changed bool, err error)

	// WithdrawDequeues removes a subscription. Removing a missing subscription is not an error.
	WithdrawDequeues(ctx context.Context, recipient domain.ActorID, id domain.SubscriptionID) error
}
