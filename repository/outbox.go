package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// An Outbox stores the notices that were not delivered yet. The write by which Acknowledge closes a
// bundle also stores its notices, atomically: one for the domain of a bundle in content mode
// domain.Request, one for subscribers if the recipient has [DequeueRequests], and one for watchers if
// the bundle is watched ([BundleWatches]). An operator's Skip or Release does not write notices. The
// removal of a watched bundle writes a notice for the audience domain.ForWatchersOfRemoval.
type Outbox interface {
	// Notices returns notices of recipient, at least one for each group and audience with stored
	// notices. The returned notices of a group and audience begin with the first stored notice, without
	// a gap, in the order in which the bundles were closed. Notices of removals are in any order.
	Notices(ctx context.Context, recipient domain.ActorID) ([]domain.Notice, error)

	// Delivered removes a notice that was delivered. Removing a missing notice is not an error.
	Delivered(ctx context.Context, n domain.Notice) error

	// Waiting returns up to limit recipients that have a notice whose time is earlier than the parameter
	// before. It also returns recipients that have a notice whose time is later by more than
	// [MaxClockAhead]: the node that wrote this notice had a wrong clock. An empty result means that no
	// notice has such a time. Recipients that are returned together with an error are valid.
	Waiting(ctx context.Context, before time.Time, limit int) ([]domain.ActorID, error)
}

// MaxClockAhead is the maximum by which the clock of a correct node may be ahead. A search with a
// parameter before also returns notices and changes whose time is later than before by more than
// MaxClockAhead, because their node had a wrong clock.
const MaxClockAhead = time.Minute
