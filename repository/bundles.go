package repository

import (
	"context"
	"errors"

	"github.com/messagehub/messagehub/domain"
)

// ErrBundleIDInUse reports that the recipient has, or had, another bundle with the requested id. It is
// of kind Conflict.
var ErrBundleIDInUse = domain.Errorf(domain.Conflict, "bundle id: %w", errors.New("already used for another bundle of this actor"))

// ErrUnanswered reports that the domain of a bundle has not produced its content yet. It is of kind
// Conflict.
var ErrUnanswered = domain.Errorf(domain.Conflict, "bundle: %w", errors.New("its content was never handed out; peek it first"))

// Bundles stores the bundles of recipients: at most one open bundle for each
// recipient and group, always the oldest unacknowledged events of its cabinet.
type Bundles interface {
	// Add opens bundle with the first bundle.Count events that run has yielded; another count is
	// Invalid. It returns the bundle as stored, and sets Opened if that was zero. The call fails with
	// ErrBundleIDInUse, or with another Conflict if the group has changed since run was obtained:
	// another bundle was opened, or one was acknowledged, and the caller calls NextUnacknowledged
	// again. A call that is repeated after an Uncertain failure may also fail in either way; then
	// NextUnacknowledged returns the bundle.
	Add(ctx context.Context, bundle domain.Bundle, run Run) (domain.Bundle, error)

	// Find returns the open bundle id of recipient and the run of its events, as if
	// all groups had been asked for. A bundle that is unknown, is closed or belongs to another recipient is
	// NotFound, and the caller cannot distinguish the three.
	Find(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (domain.Bundle, Run, error)

	// Acknowledge closes the open bundle id of recipient and returns it, with the backlog after it. Its
	// events will never be returned again. A bundle that is unknown, is closed already or belongs to
	// another recipient is NotFound, and the caller cannot distinguish the three. A bundle that
	// IsUnanswered stays open, and the call fails with ErrUnanswered: its actor cannot have received
	// it.
	//
	// NotFound after an Uncertain failure may mean that the first call has closed the bundle. It is
	// closed in any case.
	Acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (Acknowledged, error)
}
