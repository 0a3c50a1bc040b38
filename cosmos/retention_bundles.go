package cosmos

import (
	"context"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// The write that closes a bundle sets its time to live or, if the bundle is watched, its removal time.
// With an unlimited retention, it sets neither. A gate records whether all closed bundles of its group
// expire. If the gate does not record this, a sweep finds the bundles that do not expire and gives them
// the current retention, counted from the time of the sweep. Later sweeps do not search the bundles of
// the recipient again.

// maxExpiredAtOnce limits how many bundles of a recipient get a time to live in one sweep. The next sweep
// continues with the remaining bundles.
const maxExpiredAtOnce = 5_000

// patchUnits is the approximate number of request units of a patch of a bundle.
const patchUnits = 15

// An unexpiringDoc is either a closed or open bundle that does not expire, or a gate.
type unexpiringDoc struct {
	ID      string      `json:"id"`
	Kind    string      `json:"kind"`
	State   string      `json:"state"`
	Watched bool        `json:"watched"`
	ETag    azcore.ETag `json:"_etag"`
	client.FormatNumber
}

func (u *unexpiringDoc) DocumentKind() client.DocumentKind {
	if u.Kind == gateKind {
		return gateDocument
	}
	return bundleDocument
}

// expireBundles sets a time to live for the closed bundles of a recipient that do not expire, and returns
// their number. If it finds none, it records this in each gate that has not changed since the query.
// Every write that closes a bundle also writes its gate, so no bundle of that group was closed after the
// query.
func (c *call) expireBundles(ctx context.Context, recipient domain.ActorID, gates map[domain.Group]*gate) (n int, err error) {
	var pending []*gate
	for _, group := range c.r.opts.Groups.All() {
		if g := gates[group]; g.ETag != "" && !g.Expiring {
			pending = append(pending, g)
		}
	}
	if len(pending) == 0 {
		return 0, nil
	}
	key := recipient.String()
	seen := make(map[string]azcore.ETag)
	q := c.Query(c.r.db.bundles, key,
		"SELECT c.id, c.kind, c.state, c.watched, c._etag, c.v FROM c WHERE c.kind IN ('"+bundleKind+"', '"+gateKind+"') AND "+ifUnexpiring)
	for !q.IsDone() && n < maxExpiredAtOnce {
		items, err := q.Next(ctx, 1000)
		if err != nil {
			return n, err
		}
		var closed []unexpiringDoc
		for _, item := range items {
			var doc unexpiringDoc
			switch err := c.Decode(item, key, &doc); {
			case err != nil:
				return n, err
			case doc.Kind == gateKind:
				seen[doc.ID] = doc.ETag
			case doc.State != stateOpen:
				closed = append(closed, doc)
			}
		}
		for bundles := range slices.Chunk(closed, c.BatchSize(patchUnits, maxBatch)) {
			if err := c.expireBatch(ctx, key, bundles); err != nil {
				if client.IsRefused(err) { // either another sweep or a Replay has changed a bundle, or the query was stale
					err = nil
				}
				return n, err
			}
			n += len(bundles)
		}
		q.UseCall(c.Renew()) // each result page has its own limit for retries
	}
	if n > 0 {
		return n, nil // the next sweep searches again; if it finds no such bundle, it records this in the gates
	}
	for _, g := range pending {
		if seen[g.ID] != g.ETag {
			continue
		}
		next := g.confirm(c.r.client.NewID())
		next.Expiring = true
		// If the node crashes after this write, the gate has its next generation and the same position.
		if _, err := c.Put(ctx, c.r.db.bundles, key, g.ID, g.ETag, next); err != nil && !client.IsRefused(err) {
			return 0, err
		}
	}
	return 0, nil
}

// ifUnexpiring is the query condition for bundles that do not expire.
const ifUnexpiring = "NOT IS_DEFINED(c.ttl) AND NOT IS_DEFINED(c.expires)"

// expireBatch sets the time to live of closed bundles as if they were closed now. The batch is refused if
// a Replay has reopened a bundle, even if that bundle was watched and closed again later.
func (c *call) expireBatch(ctx context.Context, key string, bundles []unexpiringDoc) error {
	now := c.r.opts.Clock()
	// If the node crashes after this write, these bundles expire. The next sweep continues with the
	// remaining bundles.
	_, err := c.Batch(ctx, c.r.db.bundles, key, false, func(b *azcosmos.TransactionalBatch) {
		for i := range bundles {
			conditions := []string{"c.state != '" + stateOpen + "'", ifUnexpiring}
			if !bundles[i].Watched {
				conditions = append(conditions, ifUnwatched)
			}
			ops := client.NewPatch(bundleDocument, conditions...)
			setExpiry(&ops, bundles[i].Watched, c.r.opts.Retention, now)
			b.PatchItem(bundles[i].ID, ops, nil)
		}
	})
	return err
}
