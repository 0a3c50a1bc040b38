package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Resources keeps documents of clients: small JSON documents. Any node may call any method at any time.
//
// If a document is watched, the write that replaces or deletes it also stores a change; see [Changes].
// Neither is stored without the other. A creation stores no change, nor does a change of a document
// that is not watched.
type Resources interface {
	// Resource returns a document. It fails with NotFound if it does not exist.
	Resource(ctx context.Context, r domain.Resource) (*Resource, error)

	// PutResource stores r instead of the document that has r.Resource and r.Version; if r.Version is
	// empty, it stores a new document. It fails with Conflict if the document has another version, or
	// exists although r.Version is empty, and with NotFound if r.Version is not empty and there is no
	// document. After an Uncertain failure, it may have been stored.
	PutResource(ctx context.Context, r *Resource) (ResourceVersion, error)

	// DeleteResource deletes a document that has version. It fails as PutResource does.
	DeleteResource(ctx context.Context, r domain.Resource, version ResourceVersion) error
}

// A Resource is a document of a client.
type Resource struct {
	Resource domain.Resource
	Body     []byte // JSON
	Changed  time.Time
	Version  ResourceVersion // version of the content; changes with each PutResource
}

// A ResourceVersion identifies the content of a document for its store.
type ResourceVersion string

// Changes knows which resources are watched, and keeps their changes that were not published to their
// streams yet. The resources are documents ([Resources]), subscriptions ([Definitions]) and parties
// ([Parties]). Any node may call any method at any time, and a call may be repeated.
type Changes interface {
	StoredChanges

	// TakeTurn reports whether this node must look for changes: it takes the turn unless a node has
	// taken one within the duration every before now. A turn that a node with a fast clock has taken
	// does not last longer. After a failure, it is unknown whose turn it is.
	TakeTurn(ctx context.Context, now time.Time, every time.Duration) (bool, error)
}

// StoredChanges are the [Changes] of the resources of one store. Changes of objects ([Objects]) are in
// the store of the objects: the write that changes the current row of an object, or the facts of that
// row, stores the change.
type StoredChanges interface {
	// Observe sets the function that is called with each change that this process has stored, soon
	// after the write. Observe is called before the first change. f must not block.
	Observe(f func(domain.Change))

	// MarkWatched marks a resource as watched: each change that begins after the call has returned is
	// stored, on whichever node. It returns the version of the previous change. It fails with
	// NotFound if there is no such resource, unless mayBeAbsent is true.
	MarkWatched(ctx context.Context, r domain.Resource, mayBeAbsent bool) (version int64, err error)

	// Changes returns the changes of a resource that were not removed, in the order of their versions.
	// The newest ones may be missing.
	Changes(ctx context.Context, r domain.Resource) ([]domain.Change, error)

	// RemoveChange removes a change that was published. Removing a missing change is not an error.
	RemoveChange(ctx context.Context, c domain.Change) error

	// Unpublished returns up to limit resources that have a change from before a time, or so far
	// [Ahead] of it that the clock of the node which stored it must be wrong. An empty result means
	// that no other resource has one. Resources that it returns together with an error have one
	// nevertheless.
	Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error)
}

// BundleWatches marks bundles whose Dequeues and removals write notices for watchers.
type BundleWatches interface {
	// WatchBundle marks an open bundle as watched: each Acknowledge that begins after the call has
	// returned writes a notice for watchers, and the removal of the bundle writes another one, with the
	// next version; see [Outbox]. It returns the version of the previous notice. It may be repeated. It
	// fails with NotFound as [Bundles.Find] does.
	WatchBundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (version int64, err error)
}
