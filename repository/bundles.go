package repository

import (
	"context"
	"errors"

	"github.com/messagehub/messagehub/domain"
)

// ErrBundleIDInUse reports that the recipient has, or had, another bundle with
// the id that was asked for. It is of kind Conflict.
var ErrBundleIDInUse = domain.Errorf(domain.Conflict, "bundle id: %w", errors.New("already used for another bundle of this actor"))

// ErrUnanswered reports that a bundle's domain has not made its content yet. It is
// of kind Conflict.
var ErrUnanswered = domain.Errorf(domain.Conflict, "bundle: %w", errors.New("its content was never handed out; peek it first"))

// Bundles stores the bundles of recipients: at most one open bundle for each
// recipient and group, always the oldest unacknowledged events of its cabinet.
type Bundles interface {
	// Add opens bundle, which takes the first bundle.Count events that run has
	// yielded; another count is Invalid. It returns the bundle as stored, with
	// Opened set if that was zero. The call fails with
	// ErrBundleIDInUse, or with another Conflict if the group has moved on since
	// run was obtained: then another bundle was opened, or one was acknowledged,
	// and the caller asks NextUnacknowledged again. A call that is repeated after
	// an Uncertain failure may fail in either way, too; then NextUnacknowledged
	// returns the bundle.
	Add(ctx context.Context, bundle domain.Bundle, run Run) (domain.Bundle, error)

	// Find returns the open bundle id of recipient and the run of its events, as if
	// all groups had been asked for. A bundle that is unknown, is closed or belongs to another recipient is
	// NotFound, and the caller cannot distinguish the three.
	Find(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (domain.Bundle, Run, error)

	// Acknowledge closes the open bundle id of recipient and returns it, with what
	// waits behind it. Its events will never be returned again. A bundle that is
	// unknown, is closed already or belongs to another recipient is NotFound, and
	// the caller cannot distinguish the three. One that IsUnanswered stays open, and the call
	// fails with ErrUnanswered: its actor confirms what it never got.
	//
	// After an Uncertain failure, NotFound may mean that the first call closed
	// the bundle: it is closed either way.
	Acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (Acknowledged, error)
}
