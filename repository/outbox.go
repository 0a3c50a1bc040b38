package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// An Outbox holds the notices that have not been delivered yet. The write by which Acknowledge closes a
// bundle also stores its notices: one for the domain of a bundle in content mode domain.Request, one
// for subscribers if there are [DequeueRequests], and one for watchers if the bundle is watched
// ([BundleWatches]). Neither is stored without the other. An operator's Skip and Release write none.
// The removal of a watched bundle also writes a notice, for the audience domain.ForWatchersOfRemoval.
type Outbox interface {
	// Notices returns notices of recipient, at least one for each group and audience that has any.
	// Those of a group and audience begin with the first one, without a gap, in the order in which the
	// bundles were closed. Notices of removals are in any order.
	Notices(ctx context.Context, recipient domain.ActorID) ([]domain.Notice, error)

	// Delivered removes a notice that was delivered. Removing a missing notice is not an error.
	Delivered(ctx context.Context, n domain.Notice) error

	// Waiting returns up to limit recipients that have a notice from before a time, or so far [Ahead]
	// of it that the clock of the node which wrote the notice must be wrong. An empty result means that
	// no other recipient has one. Recipients that it returns together with an error have one
	// nevertheless.
	Waiting(ctx context.Context, before time.Time, limit int) ([]domain.ActorID, error)
}

// Ahead is the time by which a notice may be later than before and still count as new. A notice that is
// later than that comes from a node whose clock is wrong.
const Ahead = time.Minute
