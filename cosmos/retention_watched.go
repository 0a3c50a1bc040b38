package cosmos

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// When a document expires, Cosmos DB deletes it, and the hub cannot notify watches. So a bundle that is
// watched when it is closed has no time to live, but a removal time. After this time, a sweep deletes the
// bundle and creates the notice for its watches in one batch.
//
// The batch deletes the bundle on condition of the etag that the query returned. A Replay that opens the
// bundle changes the etag, so either the batch or the Replay fails. A stale query may miss bundles, or
// return bundles that were removed or opened later; the batches for these bundles are refused. After a
// refused batch, or a batch with an unknown outcome, the sweep continues with the next bundle. The next
// sweep finds the remaining bundles.
//
// The removal time is indexed, and documents of other kinds do not have it. So a sweep finds the due
// bundles of all recipients with one query. If no bundle is watched, the query reads no document.
//
// A bundle that a node of an older version closed or swept has a time to live, and is removed without a
// notice. A bundle that an older version replayed and closed again may have a removal time, too. This time
// may have been stored by an earlier Dequeue, so the sweep ignores it. With an unlimited retention, no
// sweep removes bundles.

// removalPage is the number of due bundles that one request reads.
const removalPage = 100

// A dueBundle contains the members of a watched bundle that its removal uses.
type dueBundle struct {
	ID        string      `json:"id"`
	Recipient string      `json:"recipient"`
	Group     string      `json:"group"`
	Cabinet   cabinetName `json:"cabinet"`
	Changes   int64       `json:"changes"`
	ETag      azcore.ETag `json:"_etag"`
	client.FormatNumber
}

func (*dueBundle) DocumentKind() client.DocumentKind { return bundleDocument }

// removalNotice returns the document that notifies watches of the removal of d.
func (d *dueBundle) removalNotice(now millis) (*noticeDoc, error) {
	recipient, err := domain.ParseActorID(d.Recipient)
	if err != nil {
		return nil, domain.Errorf(domain.Damaged, "bundle %s is in partition %q: %w", d.ID, d.Recipient, err)
	}
	cabinet, err := cabinetOf(recipient, d.Cabinet)
	if err != nil {
		return nil, domain.Errorf(domain.Damaged, "bundle %s of %s: %w", d.ID, d.Recipient, err)
	}
	return &noticeDoc{
		ID: removalNoticeID(d.Group, d.ID), Recipient: d.Recipient, Kind: noticeKind, Audience: noticeAudiences[domain.ForWatchersOfRemoval].member,
		Group: d.Group, Origin: cabinet.Origin.String(), Bundle: d.ID, Version: d.Changes + 1, Since: now,
	}, nil
}

// removeWatched removes the watched bundles of recipient whose removal time has passed, and returns their
// number. If recipient is zero, it removes those of all recipients. If a bundle cannot be removed,
// removeWatched continues with the next one and returns the error at the end.
func (c *call) removeWatched(ctx context.Context, recipient domain.ActorID) (removed int, err error) {
	const due = "SELECT c.id, c.recipient, c[\"group\"], c.cabinet, c.changes, c._etag, c.v FROM c" +
		" WHERE c.expires <= @now AND c.state != '" + stateOpen + "' AND NOT IS_DEFINED(c.ttl)"
	now := millisOf(c.r.opts.Clock())
	at := azcosmos.QueryParameter{Name: "@now", Value: now}
	q := c.QueryAllPartitions(c.r.db.bundles, bundleKind, due, at)
	if !recipient.IsZero() {
		q = c.Query(c.r.db.bundles, recipient.String(), due, at)
	}
	var faults []error
	for !q.IsDone() && len(faults) < maxSweepFaults {
		items, err := q.Next(ctx, removalPage)
		if q.SkipDamage(err) {
			faults = append(faults, err)
			continue
		}
		if err != nil {
			return removed, errors.Join(append(faults, err)...)
		}
		for _, item := range items {
			d := &dueBundle{}
			isRemoved := false
			if err = q.Decode(item, d); err == nil {
				isRemoved, err = c.renewCall().removeBundle(ctx, d, now) // each bundle has its own limit for retries
			}
			if isRemoved {
				removed++
			}
			switch {
			case ctx.Err() != nil:
				return removed, ctx.Err()
			case err != nil && len(faults) < maxSweepFaults:
				faults = append(faults, err)
			}
		}
		q.UseCall(c.Renew())
	}
	return removed, errors.Join(faults...)
}

// removeBundle removes a watched bundle and creates the notice of its removal. isRemoved is false if the
// bundle was removed or opened after it was read.
func (c *call) removeBundle(ctx context.Context, d *dueBundle, now millis) (isRemoved bool, err error) {
	notice, err := d.removalNotice(now)
	if err != nil {
		return false, err
	}
	// If the node crashes before this write, the bundle is still due. If it crashes afterwards, the notice
	// is stored, and any node delivers it.
	_, err = c.Batch(ctx, c.r.db.bundles, d.Recipient, false, func(b *azcosmos.TransactionalBatch) {
		b.DeleteItem(d.ID, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &d.ETag})
		b.CreateItem(client.Encode(notice), nil)
	})
	if client.IsRefused(err) {
		return false, nil
	}
	if err != nil {
		return false, client.Classify("remove bundle "+d.ID+" of "+d.Recipient, err)
	}
	c.r.metrics.swept.WithLabelValues(sweptBundle).Inc()
	if notify := c.r.removed.Load(); notify != nil {
		if recipient, err := domain.ParseActorID(d.Recipient); err == nil {
			(*notify)(recipient)
		}
	}
	return true, nil
}

// ObserveRemovals sets the function that a sweep of this node calls after it has removed a watched bundle
// and created a notice for its recipient. notify must not block.
func (r *Repository) ObserveRemovals(notify func(recipient domain.ActorID)) { r.removed.Store(&notify) }
