package repository

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Definitions stores the definitions of subscriptions. Any node may call any method at any time. After
// an Uncertain failure, a call may be repeated with the same arguments.
//
// Each change or deletion of a subscription changes [ShardEntry.Changes] of its cursor, if the cursor
// has an entry. After a crash or a failure, the entry may be unchanged.
type Definitions interface {
	// CreateSubscription stores d and returns it with its version. It ignores d.Version. If the owner
	// already has a subscription with this id, stored is that subscription, and created is false; this
	// result is never stale. The call fails with Conflict if another owner uses the id, or if a
	// subscription with the id was deleted. It fails with [ErrSubscriptionLimit] if the owner has
	// [domain.MaxSubscriptions] other subscriptions. The limit is exact, even if several nodes create
	// subscriptions at the same time.
	CreateSubscription(ctx context.Context, d *Definition) (stored *Definition, created bool, err error)

	// ReplaceSubscription replaces the subscription that has d.ID, d.Owner and d.Version with d, and
	// returns the new version. It fails with Conflict if the subscription has another version, and with
	// NotFound if it does not exist or has another owner. The stored value of Created does not change.
	ReplaceSubscription(ctx context.Context, d *Definition) (DefinitionVersion, error)

	// Subscription returns a subscription of any owner. It fails with NotFound if the subscription does
	// not exist. The result may be stale.
	Subscription(ctx context.Context, id domain.SubscriptionID) (*Definition, error)

	// CurrentSubscription is like Subscription, but its result is never stale.
	CurrentSubscription(ctx context.Context, id domain.SubscriptionID) (*Definition, error)

	// Subscriptions returns the subscriptions of an owner, in the order of their ids.
	Subscriptions(ctx context.Context, owner domain.ActorID) ([]*Definition, error)

	// DeleteSubscription deletes a subscription of owner. It fails with NotFound if the subscription
	// does not exist. If version is not empty, it fails with Conflict if the subscription has another
	// version. The id can be used again once the cursor is retired and deleted; see [Cursors.Retire].
	DeleteSubscription(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, version DefinitionVersion) error
}

// A Definition is a stored subscription.
type Definition struct {
	ID domain.SubscriptionID
	domain.Subscription
	Secret string // encrypted secret with which calls are signed; "": calls are not signed
	// Previous is the previous secret, encrypted. Until PreviousUntil, calls are also signed with it. It is
	// empty if no previous secret is in use.
	Previous      string
	PreviousUntil time.Time
	// Headers are the owner's headers for each call, encrypted; empty without headers. HeaderNames are
	// the names of the headers, in order.
	Headers     string
	HeaderNames []string
	// Rotation is the rotation in which the hub generated Secret. It is zero if the owner chose the
	// secret.
	Rotation Rotation

	Paused  bool // whether the owner has paused the subscription
	Resumed int  // number of times that the owner resumed the subscription
	Created time.Time
	Version DefinitionVersion
}

// A Rotation records that the hub replaced a secret with a generated secret. The hub uses the
// Rotation to recognize a repeated request.
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

// ErrSubscriptionLimit reports that an owner has the maximum number of subscriptions.
// NewSubscriptionLimitError returns an error that wraps it and is of kind Invalid.
var ErrSubscriptionLimit = errors.New("the owner has the maximum number of subscriptions")

// NewSubscriptionLimitError returns an Invalid error that is an [ErrSubscriptionLimit].
func NewSubscriptionLimitError() error {
	return domain.Errorf(domain.Invalid, "%w: %d", ErrSubscriptionLimit, domain.MaxSubscriptions)
}
