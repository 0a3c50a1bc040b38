package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Watches keeps the watches of owners. Any node may call any method at any time. After an Uncertain
// failure, a call may be repeated with the same arguments.
//
// A replacement or a deletion gives the cursor a shard entry, or changes its [ShardEntry.Changes], so
// that the owner of the cursor loads it even if no signal arrives. A call that cannot note the change
// there fails, although the watch may be replaced or deleted; a repeated call notes it.
type Watches interface {
	// CreateWatch stores w, whose Version is ignored. It fails with Conflict if its owner has
	// another watch with its ID.
	CreateWatch(ctx context.Context, w *Watch) error

	// ReplaceWatch stores w instead of the watch that has w.Owner, w.ID and w.Version. It fails with
	// Conflict if the watch has another version, and with NotFound if it does not exist.
	ReplaceWatch(ctx context.Context, w *Watch) error

	// Watch returns a watch of an owner. It fails with NotFound if the watch does not exist. It may be
	// a stale read.
	Watch(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*Watch, error)

	// CurrentWatch is Watch, but is never a stale read.
	CurrentWatch(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*Watch, error)

	// Watches returns up to limit watches of an owner after the first offset, in the order of their
	// ids. It may be a stale read.
	Watches(ctx context.Context, owner domain.ActorID, offset, limit int) ([]*Watch, error)

	// DeleteWatch deletes a watch of an owner. It fails with NotFound if the watch does not exist.
	DeleteWatch(ctx context.Context, owner domain.ActorID, id domain.WatchID) error
}

// A Watch is a stored watch.
type Watch struct {
	ID          domain.WatchID
	Owner       domain.ActorID
	Resource    domain.Resource
	CallbackURL string
	After       int64 // the version of the last change before the watch
	Created     time.Time
	Version     WatchVersion
}

// A WatchVersion identifies a state of a watch for its store.
type WatchVersion string
