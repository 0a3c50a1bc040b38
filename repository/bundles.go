package repository

import (
	"context"
	"errors"

	"github.com/messagehub/messagehub/domain"
)

// ErrBundleIDInUse reports that the requested id belongs to an earlier or open bundle of the same
// recipient. It is of kind Conflict.
var ErrBundleIDInUse = domain.Errorf(domain.Conflict, "bundle id: %w", errors.New("already used for another bundle of this actor; give a new UUID, or none"))

// ErrUnanswered reports that the domain has not produced the content of a bundle yet. It is of kind
// Conflict.
var ErrUnanswered = domain.Errorf(domain.Conflict, "bundle: %w", errors.New("its content was never delivered; peek the bundle first"))

// Bundles stores the bundles of recipients: at most one open bundle for each
// recipient and group, always the oldest unacknowledged events of its cabinet.
type Bundles interface {
	// Add opens bundle with the first bundle.Count events of run, which run must have yielded. It
	// returns the stored bundle. If Opened is zero, Add sets it. Add fails with Invalid if run has not
	// yielded bundle.Count events, and with ErrBundleIDInUse if the id is in use. It fails with a
	// different Conflict error if a bundle of the group was opened or acknowledged since run was
	// obtained; the caller then calls NextUnacknowledged again. A call that is repeated after an
	// Uncertain failure may fail with any of these Conflict errors although the first call succeeded;
	// then NextUnacknowledged returns the bundle.
	Add(ctx context.Context, bundle domain.Bundle, run Run) (domain.Bundle, error)

	// Find returns the open bundle id of recipient and the run of its events; the backlog of the run
	// covers all groups. A bundle that is unknown, closed or of another recipient is NotFound: the
	// caller cannot distinguish the three cases.
	Find(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (domain.Bundle, Run, error)

	// Acknowledge closes the open bundle id of recipient and returns the bundle with the backlog after
	// it. The events of the bundle will never be returned again. A bundle that is unknown, already
	// closed or of another recipient is NotFound: the caller cannot distinguish the three cases. If the
	// bundle IsUnanswered, its actor cannot have received it, so it stays open and Acknowledge fails
	// with ErrUnanswered.
	//
	// NotFound in a call that is repeated after an Uncertain failure may mean that the first call has
	// closed the bundle. After NotFound, the bundle is not open.
	Acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (Acknowledged, error)
}
