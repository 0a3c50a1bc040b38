package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Resources keeps the documents of clients, small ones of JSON. Any node may call any method at any
// time.
//
// If a document is watched, its replacement or deletion also stores a change, with the same write; see
// [Changes]. Neither is stored without the other. A creation stores none, nor does the change of a
// document that is not watched.
type Resources interface {
	// Resource returns a document. It fails with NotFound if it does not exist.
	Resource(ctx context.Context, r domain.Resource) (*Resource, error)

	// PutResource stores r instead of the document that has r.Resource and r.Version; if r.Version is
	// empty, it stores a new one. It fails with Conflict if the document has another version, or is
	// there although r.Version is empty, and with NotFound if r.Version is not empty and there is no
	// document. After an Uncertain failure, it may have been stored.
	PutResource(ctx context.Context, r *Resource) (ResourceVersion, error)

	// DeleteResource deletes a document that has a version. It fails as PutResource does.
	DeleteResource(ctx context.Context, r domain.Resource, version ResourceVersion) error
}

// A Resource is a document of clients.
type Resource struct {
	Resource domain.Resource
	Body     []byte // JSON
	Changed  time.Time
	Version  ResourceVersion // of the content; another one after each PutResource
}

// A ResourceVersion identifies the content of a document for its store.
type ResourceVersion string

// Changes knows which resources are watched, and keeps the changes of them that were not published
// to their streams: those of documents ([Resources]), subscriptions ([Definitions]) and parties
// ([Parties]). Any node may call any method at any time, and a call may be repeated.
type Changes interface {
	StoredChanges

	// TakeTurn reports whether it is the turn of this node to look for changes: no node has taken a turn
	// in the time every before now. If so, it is taken. A turn that is taken by a clock which is ahead
	// lasts no longer. A failure says nothing about whose turn it is.
	TakeTurn(ctx context.Context, now time.Time, every time.Duration) (bool, error)
}

// StoredChanges are the [Changes] of the resources of one store. Those of objects ([Objects]) are in the
// store of these: a change of the current row of an object, or of its facts, is stored by the write that makes it.
type StoredChanges interface {
	// Observe has f called with each change that this process stores, soon after it is stored. It is
	// called before the first change. f does not wait.
	Observe(f func(domain.Change))

	// MarkWatched has each change of a resource that begins after the call has returned stored, on whichever
	// node. It returns the version of the last change before. It fails with NotFound if there is no
	// such resource, unless mayBeAbsent is true.
	MarkWatched(ctx context.Context, r domain.Resource, mayBeAbsent bool) (version int64, err error)

	// Changes returns the changes of a resource that were not removed, in the order of their versions.
	// The newest ones may be missing.
	Changes(ctx context.Context, r domain.Resource) ([]domain.Change, error)

	// RemoveChange removes a change that was published. Removing what is not there is no error.
	RemoveChange(ctx context.Context, c domain.Change) error

	// Unpublished returns up to limit resources that have a change from before a time, or from so long
	// [Ahead] of it that the clock of the node which stored it is wrong. An empty result means that
	// no other resource has one. Those that it returns along with an error have one all the same.
	Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error)
}

// BundleWatches marks bundles whose Dequeues and removals leave notices for watchers.
type BundleWatches interface {
	// WatchBundle has each Acknowledge of an open bundle that begins after the call has returned leave a
	// notice for watchers, and its removal another one, with the next version; see [Outbox]. It returns the
	// version of the last notice before. It may be repeated. It fails with NotFound as [Bundles.Find] does.
	WatchBundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (version int64, err error)
}
