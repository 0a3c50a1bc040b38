package cosmos

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Dequeue reads the bundle and the gates concurrently. Then one batch closes the bundle and moves the
// gate past it, whatever the size of the bundle. Every batch that opens or closes a bundle writes both
// documents, so the state of a bundle always agrees with its gate.

// Acknowledge implements repository.Bundles.
func (r *Repository) Acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (repository.Acknowledged, error) {
	c := r.beginCall("dequeue")
	writeID := r.client.NewID()
	var closed repository.Acknowledged
	err := c.Retry(ctx, func() (err error) {
		closed, err = c.acknowledge(ctx, recipient, id, writeID)
		return err
	})
	return closed, c.Outcome("dequeue", err)
}

func errNotOpen(id domain.BundleID) error {
	return domain.Errorf(domain.NotFound, "bundle %s is not open for this actor", id)
}

func (c *call) acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID, writeID string) (closed repository.Acknowledged, err error) {
	doc, gates, err := c.bundleAndGates(ctx, recipient, id)
	if err == nil && anyFrozen(gates) {
		err = repository.ErrFrozen
	}
	if err != nil {
		return closed, err
	}
	if doc == nil {
		return c.notOpen(ctx, recipient, id, writeID, gates)
	}
	bundle, err := doc.toBundle()
	if err != nil {
		return closed, err
	}
	closed.Bundle, closed.HasNotice = bundle, doc.hasNotice(&bundle, gates)
	if doc.State != stateOpen {
		if doc.WriteID == writeID {
			closed.Remaining = c.r.backlogAfterDequeue(recipient, doc, gates)
			return closed, nil
		}
		return c.notOpen(ctx, recipient, id, writeID, gates)
	}
	g := gates[bundle.Group]
	if g == nil || g.Open != doc.ID {
		return closed, client.ErrStale // bundle and gate were read at different times
	}
	if bundle.IsUnanswered() {
		return closed, c.whyUnanswered(ctx, recipient, id)
	}
	advanced := g.advancePast(doc, writeID).recordRetention(c.r.opts.Retention)
	now := c.r.opts.Clock()
	notices := newNotices(doc, advanced, &bundle, now)
	// The batch is atomic. A crash before this write leaves the bundle open. After it, the bundle is
	// closed, the gate is past the bundle, and the notices are in the outbox.
	_, err = c.Batch(ctx, c.r.db.bundles, recipient.String(), false, func(b *azcosmos.TransactionalBatch) {
		b.PatchItem(doc.ID, doc.dequeuePatch(writeID, c.r.opts.Retention, now), nil)
		putInBatch(b, g.ID, g.ETag, client.Encode(advanced))
		for _, n := range notices {
			b.CreateItem(client.Encode(n), nil)
		}
	})
	if client.IsRefused(err) {
		return closed, client.ErrStale // the next read tells whether this Dequeue or another one has closed the bundle
	}
	if err != nil {
		return closed, err
	}
	// A crash before these hints are written leaves positions and entries that are too low.
	// The next Peek repairs them.
	c.r.hints.afterDequeue(bundle.Cabinet, doc, advanced.At[doc.Cabinet])
	if doc.Next > 0 {
		c.r.known.rememberFirst(bundle.Cabinet, advanced.At[doc.Cabinet], doc.Next)
	}
	closed.Remaining = c.r.backlogAfterDequeue(recipient, doc, gates)
	return closed, nil
}

// notOpen returns the result of a Dequeue whose bundle is missing or not open: NotFound, unless an
// earlier attempt of this Dequeue has closed the bundle.
func (c *call) notOpen(ctx context.Context, recipient domain.ActorID, id domain.BundleID, writeID string, gates map[domain.Group]*gate) (closed repository.Acknowledged, err error) {
	err = c.whyNotOpen(ctx, recipient, id, gates)
	if domain.KindOf(err) != domain.NotFound || !c.InDoubt() {
		return closed, err
	}
	doc := &bundleDoc{}
	switch perr := c.Patch(ctx, c.r.db.bundles, recipient.String(), id.String(), changesNothing(bundleDocument), doc); {
	case client.IsNotFound(perr) || perr == nil && doc.WriteID != writeID:
		return closed, err
	case perr != nil:
		return closed, perr
	}
	closed.Bundle, err = doc.toBundle()
	closed.HasNotice = doc.hasNotice(&closed.Bundle, gates)
	closed.Remaining = c.r.backlogAfterDequeue(recipient, doc, gates)
	return closed, err
}

// hasNotice reports whether a Dequeue of d writes a notice. b is d as a domain.Bundle, and gates are the
// gates that the Dequeue has read.
func (d *bundleDoc) hasNotice(b *domain.Bundle, gates map[domain.Group]*gate) bool {
	g := gates[b.Group]
	return d.Watched || b.Content == domain.Request || g != nil && len(g.DequeueRequests) > 0
}

// whyUnanswered returns repository.ErrUnanswered for a bundle that had no answer when it was read, or
// client.ErrStale if that read was stale.
func (c *call) whyUnanswered(ctx context.Context, recipient domain.ActorID, id domain.BundleID) error {
	if c.r.db.ReadsMayBeStale() {
		doc, err := c.openNow(ctx, recipient, id)
		if domain.KindOf(err) == domain.NotFound || err == nil && doc.Object != "" {
			return client.ErrStale // the bundle was answered or closed since the read, perhaps by this call
		}
		if err != nil {
			return err
		}
	}
	return repository.ErrUnanswered
}
