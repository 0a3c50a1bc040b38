package repository

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Definitions keeps the definitions of subscriptions. Any node may call any method at any time. After
// an Uncertain failure, a call may be repeated with the same arguments.
//
// Each change or deletion of a subscription is noted in [ShardEntry.Changes] of its cursor, if there is
// one. After a crash or a failure, a change may not be noted.
type Definitions interface {
	// CreateSubscription stores d, whose Version is ignored, and returns it with its version. If the
	// owner has a subscription with this id, it returns that one unchanged, and created is false. The
	// call fails with Conflict if another owner has the id, or if a subscription with it was deleted,
	// and with [ErrSubscriptionLimit] if the owner has [domain.MaxSubscriptions] others. The limit is
	// exact, however many nodes create subscriptions at the same time.
	CreateSubscription(ctx context.Context, d *Definition) (stored *Definition, created bool, err error)

	// ReplaceSubscription stores d instead of the subscription that has d.ID, d.Owner and
	// d.Version, and returns the new version. It fails with Conflict if the subscription has
	// another version, and with NotFound if it does not exist or has another owner. Created is not
	// replaced.
	ReplaceSubscription(ctx context.Context, d *Definition) (DefinitionVersion, error)

	// Subscription returns a subscription of any owner. It fails with NotFound if it does not exist.
	// It may be a stale read.
	Subscription(ctx context.Context, id domain.SubscriptionID) (*Definition, error)

	// CurrentSubscription is Subscription, but is never a stale read.
	CurrentSubscription(ctx context.Context, id domain.SubscriptionID) (*Definition, error)

	// Subscriptions returns the subscriptions of an owner, in the order of their ids.
	Subscriptions(ctx context.Context, owner domain.ActorID) ([]*Definition, error)

	// DeleteSubscription deletes a subscription of owner. It fails with NotFound if it does not exist.
	// If version is not empty, it fails with Conflict if the subscription has another version. The id
	// cannot be used again until its cursor was retired and nothing is left of it.
	DeleteSubscription(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, version DefinitionVersion) error
}

// A Definition is a stored subscription.
type Definition struct {
	ID domain.SubscriptionID
	domain.Subscription
	Secret string // sealed; "": calls are not signed
	// Previous is the previous secret, sealed. Calls are signed with it, too, until PreviousUntil. It
	// is empty otherwise.
	Previous      string
	PreviousUntil time.Time
	// Headers are the owner's headers for each call, sealed; empty without headers. HeaderNames are
	// their names, in order.
	Headers     string
	HeaderNames []string
	// Rotation is the rotation by which the hub has made Secret. It is zero if the owner has chosen the
	// secret.
	Rotation Rotation

	Paused  bool // by the owner
	Resumed int  // number of times that the owner has resumed it
	Created time.Time
	Version DefinitionVersion
}

// A Rotation records the replacement of a secret by one that the hub has made, so that a repeated
// request is recognized.
type Rotation struct {
	From DefinitionVersion // the version that was replaced
	At   time.Time
}

// Clone returns a copy that shares nothing with d.
func (d *Definition) Clone() *Definition {
	c := *d
	c.Subscription = d.Subscription.Clone()
	c.HeaderNames = slices.Clone(d.HeaderNames)
	return &c
}

// A DefinitionVersion identifies a state of a definition for its store.
type DefinitionVersion string

// ErrSubscriptionLimit reports that an owner has as many subscriptions as the limit permits. Its kind
// is Invalid.
var ErrSubscriptionLimit = errors.New("the owner has as many subscriptions as an owner may have")

// NewSubscriptionLimitError returns an Invalid error that is an [ErrSubscriptionLimit].
func NewSubscriptionLimitError() error {
	return domain.Errorf(domain.Invalid, "%w: %d", ErrSubscriptionLimit, domain.MaxSubscriptions)
}
