package cosmos

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.BundleWatches = (*Repository)(nil)

// WatchBundle implements [repository.BundleWatches]. It patches the document, so it acts on the current
// state. A Dequeue that read the bundle before the patch is refused, because its write requires a
// bundle without a watch.
func (r *Repository) WatchBundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (version int64, err error) {
	c := r.beginCall("watch bundle")
	err = c.Retry(ctx, func() error {
		ops := client.NewPatch(bundleDocument, ifOpen)
		ops.AppendSet("/watched", true)
		doc := &bundleDoc{}
		// A crash after this write leaves a bundle that counts as watched but has no watch. The notice of
		// its Dequeue then has no receiver.
		err := c.Patch(ctx, r.db.bundles, recipient.String(), id.String(), ops, doc)
		if client.IsNotFound(err) || client.IsRefused(err) {
			return errNotOpen(id)
		}
		version = doc.Changes
		return err
	})
	return version, c.Outcome("watch bundle "+id.String(), err)
}
