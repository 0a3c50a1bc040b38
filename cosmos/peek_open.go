package cosmos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Add implements repository.Bundles.
func (r *Repository) Add(ctx context.Context, bundle domain.Bundle, from repository.Run) (domain.Bundle, error) {
	run, ok := from.(*eventRange)
	if !ok {
		return bundle, domain.Errorf(domain.Invalid, "add bundle: the run belongs to another store")
	}
	if bundle.Count < 1 || bundle.Count > run.yielded {
		return bundle, domain.Errorf(domain.Invalid, "add bundle: it takes %d events of the %d that the run has yielded", bundle.Count, run.yielded)
	}
	if bundle.Peeked = bundle.Peeked.Stored(); !r.opts.StoreTraces {
		bundle.Peeked = domain.TraceContext{}
	}
	if bundle.Opened.IsZero() {
		bundle.Opened = r.opts.Clock().UTC().Truncate(time.Millisecond)
	}
	c := r.beginCall("peek")
	writeID := r.client.NewID()
	if run.gate == nil { // the run belongs to a bundle that is open already
		doc := newBundleDoc(&bundle, writeID, nil, 0)
		err := c.whyNotAdded(ctx, doc, client.FailureOf(errors.New("the group has an open bundle")))
		return bundle, client.Classify("open bundle "+doc.ID, err)
	}
	ranges := run.slotRanges(bundle.Count)
	doc := newBundleDoc(&bundle, writeID, ranges, 0)
	if next := run.eventAfter(bundle.Count); next != nil {
		doc.NextSaved = millisOf(next.Saved)
		// If the next event is in the tail, the entry is not moved to it: events in the tail need no
		// entry, and the Dequeue of a bundle from the tail would not remove the entry.
		if end := ranges[len(ranges)-1]; end.To < run.limitOf(end.Drawer) && !run.isInTail(end.Drawer, end.To) {
			doc.Next = next.Sequence
		}
	}
	doc.Behind = run.backlogOfNewBundle(bundle.Count)
	doc.Before, doc.Start = run.gate.Last, run.start
	opened := run.gate.open(doc, writeID)
	doc.setOpening(opened)

	// If the node crashes before this write, the gate is unchanged; objects in the folder of the first
	// drawer are deleted with the drawer. If it crashes afterwards, the bundle is open, and the next Peek
	// returns it.
	_, err := c.Batch(ctx, r.db.bundles, doc.Recipient, false, func(b *azcosmos.TransactionalBatch) {
		b.CreateItem(client.Encode(doc), nil)
		putInBatch(b, opened.ID, run.gate.ETag, client.Encode(opened))
	})
	if client.IsRefused(err) {
		err = c.whyNotAdded(ctx, doc, client.FailureOf(err))
	}
	if err != nil {
		return bundle, c.Outcome(fmt.Sprintf("open bundle %s of %s", doc.ID, doc.Recipient), err)
	}
	return bundle, nil
}

// whyNotAdded returns the reason why the batch that opens a bundle was refused: another writer has
// changed the gate, or the id of the bundle is in use. It returns nil if an earlier attempt was applied.
func (c *call) whyNotAdded(ctx context.Context, doc *bundleDoc, refused *client.Failure) error {
	lost := domain.Errorf(domain.Conflict, "the group has changed since it was read: %w", refused)
	if refused.Operation() != 0 {
		return lost // the batch was refused because the gate has changed, not because the bundle exists
	}
	var stored bundleDoc
	_, err := c.Read(ctx, c.r.db.bundles, doc.Recipient, doc.ID, &stored)
	switch {
	case client.IsNotFound(err):
		return lost // the read is stale; the next Peek reads again
	case err != nil:
		return err
	case stored.WriteID != doc.WriteID:
		return repository.ErrBundleIDInUse
	case stored.State != stateOpen:
		return lost // this call opened the bundle, and another call has closed it
	}
	return nil
}

// putInBatch adds the write of an item to a batch. With an etag, the write replaces the item if it still
// has this etag; otherwise, it creates the item.
func putInBatch(b *azcosmos.TransactionalBatch, id string, etag azcore.ETag, doc []byte) {
	if etag == "" {
		b.CreateItem(doc, nil)
		return
	}
	b.ReplaceItem(id, doc, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
}

// limitOf returns the end of the filled slots of a drawer, or 0 if the run does not include the drawer.
func (r *eventRange) limitOf(drawer string) int {
	for _, s := range r.parts {
		if s.Drawer == drawer {
			return s.To
		}
	}
	return 0
}
