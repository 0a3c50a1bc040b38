package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Resources stores small JSON documents of clients. Any node may call any method at any time.
//
// The write that replaces or deletes a watched document also stores a change, atomically; see [Changes].
// The creation of a document stores no change. The replacement and deletion of an unwatched document
// store no change either.
type Resources interface {
	// Resource returns a document. Resource fails with NotFound if the document does not exist.
	Resource(ctx context.Context, r domain.Resource) (*Resource, error)

	// PutResource replaces the document that has r.Resource and r.Version with r; if r.Version is empty,
	// it stores a new document. It returns the new version. It fails with Conflict if the document has
	// another version, or if it exists and r.Version is empty. It fails with NotFound if r.Version is
	// not empty and the document does not exist. After an Uncertain failure, the document may have been
	// stored.
	PutResource(ctx context.Context, r *Resource) (ResourceVersion, error)

	// DeleteResource deletes a document. It fails with Conflict if the document does not have version,
	// and with NotFound if the document does not exist.
	DeleteResource(ctx context.Context, r domain.Resource, version ResourceVersion) error
}

// A Resource is a document of a client.
type Resource struct {
	Resource domain.Resource
	Body     []byte // JSON document
	Changed  time.Time
	Version  ResourceVersion // version of the content; changes with each PutResource
}

// A ResourceVersion identifies the content of a document for its store.
type ResourceVersion string

// Changes marks resources as watched, and stores the changes of watched resources that were not
// published to their streams yet. A resource is a document ([Resources]), a subscription ([Definitions])
// or a party ([Parties]). Any node may call any method at any time, and a call may be repeated.
type Changes interface {
	StoredChanges

	// TakeTurn reports whether this node must search for unpublished changes. If the last turn of any
	// node began at least every ago, TakeTurn stores now as the time of a new turn and returns true. It
	// does the same if the stored time is later than now, so a node with a fast clock does not delay the
	// searches of other nodes. After a failure, the time may or may not be stored.
	TakeTurn(ctx context.Context, now time.Time, every time.Duration) (bool, error)
}

// StoredChanges contains the methods of [Changes] for the resources of one store. The store of objects
// ([Objects]) stores the changes of objects: the write that changes the current row of an object, or the
// facts of that row, also stores the change.
type StoredChanges interface {
	// Observe sets the function that is called with each change that this process stores, soon after
	// the write. The caller calls Observe before the first change. f must not block.
	Observe(f func(domain.Change))

	// MarkWatched marks a resource as watched: each change, on any node, that begins after MarkWatched
	// has returned is stored. version is the version of the previous change. MarkWatched fails with
	// NotFound if the resource does not exist and mayBeAbsent is false.
	MarkWatched(ctx context.Context, r domain.Resource, mayBeAbsent bool) (version int64, err error)

	// Changes returns the changes of a resource that were not removed, in the order of their versions.
	// The newest changes may be missing.
	Changes(ctx context.Context, r domain.Resource) ([]domain.Change, error)

	// RemoveChange removes a change that was published. Removing a missing change is not an error.
	RemoveChange(ctx context.Context, c domain.Change) error

	// Unpublished returns up to limit resources that have a change whose time is earlier than the
	// parameter before. It also returns resources that have a change whose time is later by more than
	// [MaxClockAhead]: the node that stored this change had a wrong clock. An empty result means that no
	// change has such a time. Resources that are returned together with an error are valid.
	Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error)
}

// BundleWatches marks bundles as watched, so that a Dequeue or removal writes a notice for watchers.
type BundleWatches interface {
	// WatchBundle marks an open bundle as watched: each Acknowledge that begins after WatchBundle has
	// returned writes a notice for watchers, and the removal of the bundle writes a notice with the next
	// version; see [Outbox]. version is the version of the previous notice. WatchBundle may be repeated.
	// It fails with NotFound as [Bundles.Find] does.
	WatchBundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (version int64, err error)
}
