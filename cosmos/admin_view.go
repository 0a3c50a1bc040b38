package cosmos

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Bundle implements repository.Admin. The events of a closed bundle remain readable until a sweep
// removes their drawers.
func (r *Repository) Bundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (repository.FoundBundle, repository.Run, error) {
	c := r.beginCall("bundle")
	var found repository.FoundBundle
	var events repository.Run
	err := c.Retry(ctx, func() (err error) {
		found, events, err = c.bundleAndRun(ctx, recipient, id)
		return err
	})
	if err != nil {
		return repository.FoundBundle{}, nil, client.Classify("read bundle "+id.String(), err)
	}
	return found, events, nil
}

func (c *call) bundleAndRun(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (repository.FoundBundle, repository.Run, error) {
	gates, h, err := c.readGatesAndHead(ctx, recipient, c.r.opts.Groups.All())
	if err != nil {
		return repository.FoundBundle{}, nil, err
	}
	doc, err := c.readRetained(ctx, recipient, id)
	if err != nil {
		return repository.FoundBundle{}, nil, err
	}
	found, err := doc.foundBundle(anyFrozen(gates))
	if err != nil {
		return found, nil, err
	}
	if _, isKnown := h.Cabinets[doc.Cabinet]; !isKnown || h.cabinetFloor(doc.Cabinet) > doc.Ranges[0].Ordinal {
		return found, nil, nil
	}
	events, err := c.runOf(&found.Bundle, &doc.bundleDoc, h)
	if err != nil {
		return found, nil, err
	}
	events.head, events.gates = h, gates
	return found, events, nil
}

// readRetained reads an open or closed bundle. If reads may be stale, it checks that a bundle that was not
// found does not exist.
func (c *call) readRetained(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (*foundBundleDoc, error) {
	doc := &foundBundleDoc{}
	_, err := c.Read(ctx, c.r.db.bundles, recipient.String(), id.String(), doc)
	if !client.IsNotFound(err) {
		return doc, err
	}
	if c.r.db.ReadsMayBeStale() {
		switch isThere, err := c.documentExists(ctx, c.r.db.bundles, recipient.String(), id.String()); {
		case err != nil:
			return nil, err
		case isThere:
			return nil, client.ErrStale
		}
	}
	return nil, domain.Errorf(domain.NotFound, "bundle %s is not retained for this actor", id)
}

// RecordView implements repository.Admin. It writes only the record, because a write of the bundle would
// extend the bundle's retention.
func (r *Repository) RecordView(ctx context.Context, recipient domain.ActorID, id domain.BundleID, by repository.AdminAction) error {
	return r.executeOrder(ctx, recipient, lookOrder, by, func(c *call, _ string) (*decision, error) {
		doc, err := c.readRetained(ctx, recipient, id)
		if err != nil {
			return nil, err
		}
		return &decision{group: doc.Group, bundle: &doc.bundleDoc}, nil
	})
}
