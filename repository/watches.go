package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Watches stores the watches of owners. Any node may call any method at any time. After an Uncertain
// failure, a call may be repeated with the same arguments.
//
// A replacement or deletion of a watch creates the shard entry of its cursor, or changes the entry's
// [ShardEntry.Changes], so that the owner of the cursor loads the cursor even if no signal arrives. If
// the entry cannot be written, the call fails, although the watch may be replaced or deleted; a repeated
// call writes the entry.
type Watches interface {
	// CreateWatch stores w and ignores w.Version. It fails with Conflict if w.Owner has another watch
	// with w.ID.
	CreateWatch(ctx context.Context, w *Watch) error

	// ReplaceWatch replaces the watch that has w.Owner, w.ID and w.Version with w. It fails with
	// Conflict if the watch has another version, and with NotFound if the watch does not exist.
	ReplaceWatch(ctx context.Context, w *Watch) error

	// Watch returns a watch of an owner. It fails with NotFound if the watch does not exist. The result
	// may be stale.
	Watch(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*Watch, error)

	// CurrentWatch is like Watch, but its result is never stale.
	CurrentWatch(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*Watch, error)

	// Watches skips offset watches of an owner and returns up to limit of the next watches, in the order
	// of their ids. The result may be stale.
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
	After       int64 // version of the last change before the watch was created
	Created     time.Time
	Version     WatchVersion
}

// A WatchVersion identifies a state of a watch for its store.
type WatchVersion string
