package cosmos

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Bundle and gate change together. Every batch that changes the state of a bundle also writes its gate.
// Every write that changes the open bundle of a gate also changes the state of that bundle. So a bundle is
// open if and only if its gate names it as the open bundle.
//
// Even if reads may be stale, a patch on condition that the bundle is open tells whether it is: the
// service evaluates the condition on the current document. If the patch is refused, the bundle is not
// open. The patch sets a member to its current value and has no condition on the etag, so any number of
// such patches may run concurrently. They do not make a Dequeue fail, because its conditions are on the
// gate and on members of the bundle that the patch does not write.

// bundleAndGates reads a bundle and all gates of its recipient concurrently. The bundle is nil if it
// does not exist.
func (c *call) bundleAndGates(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (*bundleDoc, map[domain.Group]*gate, error) {
	doc := &bundleDoc{}
	gates := make(map[domain.Group]*gate)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		etag, err := c.Read(ctx, c.r.db.bundles, recipient.String(), id.String(), doc)
		if client.IsNotFound(err) {
			doc, err = nil, nil
			return err
		}
		if err == nil {
			doc.etag = etag
		}
		return err
	})
	g.Go(func() error { return c.readGates(ctx, recipient, c.r.opts.Groups.All(), gates) })
	err := g.Wait()
	return doc, gates, err
}

// readOpen reads the open bundle of g.
func (c *call) readOpen(ctx context.Context, g *gate) (*bundleDoc, error) {
	var doc bundleDoc
	_, err := c.Read(ctx, c.r.db.bundles, g.Recipient, g.Open, &doc)
	if client.IsNotFound(err) {
		return nil, client.ErrNotYetVisible
	}
	return &doc, err
}

// proveOpen returns the current state of the open bundle of g, including the answer of its domain. A patch
// proves that the bundle is open. The batch of the patch also reads the gate, so proveOpen fails with
// ErrFrozen if the actor was frozen after g was read.
func (c *call) proveOpen(ctx context.Context, g *gate) (*bundleDoc, error) {
	// This write changes nothing, so a crash after it has no effect.
	results, err := c.Batch(ctx, c.r.db.bundles, g.Recipient, true, func(b *azcosmos.TransactionalBatch) {
		b.PatchItem(g.Open, changesNothing(bundleDocument, ifOpen), nil)
		b.ReadItem(g.ID, nil)
	})
	switch {
	case client.StatusOf(err) == http.StatusPreconditionFailed: // the bundle was closed since g was read, or its format is newer
		if _, err = c.readOpen(ctx, g); err == nil {
			err = client.ErrStale
		}
		return nil, err
	case client.IsRefused(err):
		return nil, client.ErrNotYetVisible
	case err != nil:
		return nil, err
	}
	var doc bundleDoc
	var now gate
	if err := c.Decode(results[0].ResourceBody, g.Recipient, &doc); err != nil {
		return nil, err
	}
	if err := c.Decode(results[1].ResourceBody, g.Recipient, &now); err != nil {
		return nil, err
	}
	switch {
	case now.Open != doc.ID:
		return nil, domain.Errorf(domain.Damaged, "bundle %s of %s is open, and %s has %q open", doc.ID, g.Recipient, g.ID, now.Open)
	case now.Frozen:
		return nil, repository.ErrFrozen
	}
	return &doc, nil
}

// openNow returns the current state of a bundle, or fails with NotFound if the bundle is not open. If
// reads may be stale, openNow patches the bundle instead of reading it.
func (c *call) openNow(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (*bundleDoc, error) {
	doc := &bundleDoc{}
	var err error
	if c.r.db.ReadsMayBeStale() {
		// This write changes nothing, so a crash after it has no effect.
		err = c.Patch(ctx, c.r.db.bundles, recipient.String(), id.String(), changesNothing(bundleDocument, ifOpen), doc)
	} else {
		_, err = c.Read(ctx, c.r.db.bundles, recipient.String(), id.String(), doc)
	}
	if client.StatusOf(err) == http.StatusPreconditionFailed { // the bundle is not open, or its format is newer
		if _, err = c.Read(ctx, c.r.db.bundles, recipient.String(), id.String(), doc); err == nil || client.IsNotFound(err) {
			return nil, errNotOpen(id)
		}
	}
	if client.IsNotFound(err) || err == nil && doc.State != stateOpen {
		return nil, errNotOpen(id)
	}
	return doc, err
}

// whyNotOpen returns NotFound for a bundle that was not open when it was read. A stale read may miss that
// the bundle was opened, or opened again by a Replay. So if reads may be stale, a patch that changes
// nothing tests whether the bundle is open. If the bundle is open, whyNotOpen returns ErrStale.
func (c *call) whyNotOpen(ctx context.Context, recipient domain.ActorID, id domain.BundleID, gates map[domain.Group]*gate) error {
	if c.r.db.ReadsMayBeStale() {
		if _, err := c.openNow(ctx, recipient, id); err != nil {
			return err
		}
		return client.ErrStale
	}
	for _, g := range gates {
		if g.Open == id.String() {
			return client.ErrStale // bundle and gate were read at different times
		}
	}
	return errNotOpen(id)
}
