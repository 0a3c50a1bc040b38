package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// An Outbox holds the notices that have not been delivered yet. Acknowledge writes
// them with the same decision by which it closes the bundle: one for the domain of a bundle
// in content mode domain.Request, one for subscribers, if [DequeueRequests] says so, and one for
// watchers, if [BundleWatches] says so. There is no one without the other. An operator's Skip and Release write none.
// The removal of a watched bundle writes one, too, of audience domain.ForWatchersOfRemoval.
type Outbox interface {
	// Notices returns notices of recipient that are in the outbox, at least one of each
	// group and audience that has any: those of a group and audience from the first on,
	// without a gap, in the order in which the bundles were closed. Those of removals are in any order.
	Notices(ctx context.Context, recipient domain.ActorID) ([]domain.Notice, error)

	// Delivered removes a notice that was delivered. Removing what is not there
	// is no error.
	Delivered(ctx context.Context, n domain.Notice) error

	// Waiting returns up to limit recipients, each with a notice in the
	// outbox from before a moment, or from so long [Ahead] of it that the clock of the
	// node which left it is wrong. An empty result means that no other recipient has one. Those
	// that it returns along with an error have one all the same.
	Waiting(ctx context.Context, before time.Time, limit int) ([]domain.ActorID, error)
}

// Ahead is how much later than before a notice may be and still count as new. A later one comes from a
// node whose clock is wrong.
const Ahead = time.Minute
