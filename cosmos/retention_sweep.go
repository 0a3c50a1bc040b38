package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Swept has the results of a sweep.
type Swept struct {
	Recipients int // recipients whose mailboxes were swept
	Drawers    int
	Documents  int // pages and filters that were removed
	Bundles    int // bundles that were closed under an unlimited retention, and now have a time to live
	Watched    int // watched bundles that were removed
}

// Sweep removes the drawers whose events have all been acknowledged for longer than Options.Retention. Any
// number of nodes may sweep at the same time. If a sweep ends early, the next sweep completes its work.
// The error names the first recipients that could not be swept.
func (r *Repository) Sweep(ctx context.Context) (Swept, error) {
	return r.sweep(ctx, r.beginCall("sweep"))
}

// SweepRecipient is [Repository.Sweep] for one recipient.
func (r *Repository) SweepRecipient(ctx context.Context, recipient domain.ActorID) (Swept, error) {
	if r.opts.Retention < 0 {
		return Swept{}, nil
	}
	swept, err := r.beginCall("sweep").sweepRecipient(ctx, recipient)
	watched, failure := r.beginCall("sweep").removeWatched(ctx, recipient)
	swept.Recipients, swept.Watched = 1, watched
	err = errors.Join(err, failure)
	return swept, client.Classify("sweep what "+recipient.String()+" has acknowledged", err)
}

// sweep implements Sweep with calls of the same kind as c.
func (r *Repository) sweep(ctx context.Context, c *call) (Swept, error) {
	var total Swept
	if r.opts.Retention < 0 {
		return total, nil
	}
	var faults []error
	err := c.eachRecipient(ctx, func(recipient domain.ActorID) error {
		swept, err := c.renewCall().sweepRecipient(ctx, recipient)
		total.Recipients++
		total.Drawers += swept.Drawers
		total.Documents += swept.Documents
		total.Bundles += swept.Bundles
		if err != nil && ctx.Err() == nil {
			if len(faults) < maxSweepFaults {
				faults = append(faults, client.Classify("sweep what "+recipient.String()+" has acknowledged", err))
			}
			err = nil
		}
		return err
	})
	watched, failure := c.renewCall().removeWatched(ctx, domain.ActorID{})
	total.Watched = watched
	return total, errors.Join(append(faults, err, failure)...)
}

// maxSweepFaults is the limit for the faults that a sweep reports: an unavailable store causes a fault for
// each recipient.
const maxSweepFaults = 20

// eachRecipient calls visit for every recipient that has a head. At the end it returns the errors of
// heads in partitions that belong to no recipient.
func (c *call) eachRecipient(ctx context.Context, visit func(domain.ActorID) error) error {
	q := headsQuery(c)
	var all []error
	for !q.IsDone() {
		recipients, strays, err := nextRecipients(ctx, q, 1000)
		if err != nil {
			return err
		}
		all = append(all, strays[:min(len(strays), maxSweepFaults-len(all))]...)
		for _, recipient := range recipients {
			if err := visit(recipient); err != nil {
				return err
			}
		}
		q.UseCall(c.Renew()) // each result page has its own budget of retries
	}
	return errors.Join(all...)
}

func (c *call) sweepRecipient(ctx context.Context, recipient domain.ActorID) (Swept, error) {
	var h *head
	gates := make(map[domain.Group]*gate)
	attempts := 0
	err := c.Retry(ctx, func() (err error) {
		attempts++
		h, err = c.raiseFloors(ctx, recipient, gates, attempts <= maxCloseAttempts)
		return err
	})
	if err != nil {
		return Swept{}, err
	}
	bundles, expiry := c.expireBundles(ctx, recipient, gates)
	swept, err := c.clearDrawers(ctx, recipient, h)
	swept.Bundles = bundles
	return swept, errors.Join(expiry, err)
}

// maxCloseAttempts is the limit for the attempts of a sweep to close drawers of a recipient. To close a
// drawer, the sweep replaces the head, and a busy writer may replace the head first each time. After these
// attempts the sweep only patches the head, and the next sweep tries to close the drawers again.
const maxCloseAttempts = 3

// raiseFloors updates the retention in the head of recipient and returns the new head. It stores the
// gates that it has read in gates.
//
// The head is read first. Before a floor rises, a conditional write of the gate proves that the gate is
// current. After that the head is written, on condition that its retention has not changed. A Replay,
// which moves a gate back, writes in the opposite order: first the fence in the head, then the gate. So
// either the sweep or the Replay fails.
func (c *call) raiseFloors(ctx context.Context, recipient domain.ActorID, gates map[domain.Group]*gate, mayClose bool) (*head, error) {
	h, err := c.readHead(ctx, recipient)
	if err != nil {
		return nil, err
	}
	if err := c.readGates(ctx, recipient, c.r.opts.Groups.All(), gates); err != nil {
		return nil, err
	}
	if err := c.forgetRemoved(ctx, h, gates); err != nil {
		return nil, err
	}
	mayRemove := mayClose && !c.r.opts.KeepCabinets && h.allowsRemoval()
	p, err := planRetention(h, gates, c.r.opts.Groups, c.r.opts.Clock(), c.r.opts.Retention, mayClose, mayRemove)
	if err != nil || !p.isChanged {
		return h, err
	}
	for group := range p.raised {
		if err := c.proveCurrent(ctx, gates[group]); err != nil {
			return nil, err
		}
	}
	for _, name := range p.flushed {
		for len(h.Cabinets[name].Tail) > 0 {
			if h, err = c.flushTail(ctx, recipient, h, name); err != nil {
				return nil, err
			}
		}
	}
	return c.writeRetention(ctx, h, p)
}

// proveCurrent replaces a gate by the gate that was read, with the next generation. If the write succeeds,
// the gate was current; otherwise the error is client.ErrStale.
func (c *call) proveCurrent(ctx context.Context, g *gate) error {
	// A crash after this write leaves the gate with its next generation. The next sweep proves the
	// gate again.
	_, err := c.Put(ctx, c.r.db.bundles, g.Recipient, g.ID, g.ETag, g.confirm(c.r.client.NewID()))
	if client.IsRefused(err) {
		return client.ErrStale
	}
	return err
}

// writeRetention writes p to the head. Unless p closes a drawer or removes a cabinet, the write does not
// delay a Save: it is a patch whose only condition is the fence, and a Save in flight continues with the
// current head.
func (c *call) writeRetention(ctx context.Context, h *head, p *retentionPlan) (*head, error) {
	// A crash after this write leaves one of these states: milestones, which any node uses; drawers below
	// a floor, which no reader uses and the next sweep deletes; a cabinet whose last drawer is closed but
	// not sealed, as after a rollback: the next reader seals that drawer, and the next Save begins another
	// one; gates with positions in removed cabinets: the next sweep deletes these positions.
	next := h.setRetention(p.of, c.r.client.NewID(), p.closed, p.removed)
	var err error
	if len(p.closed)+len(p.removed) > 0 {
		_, err = c.Put(ctx, c.r.db.catalog, h.PartitionKey, headID, h.etag, next)
	} else {
		ops := client.NewPatch(headDocument, fenceIs(h.Fence))
		ops.AppendSet("/retention", json.RawMessage(client.Encode(next.Retention))) // azcosmos would not use the encoding of client.Encode
		ops.AppendSet("/fence", next.Fence)
		err = c.Patch(ctx, c.r.db.catalog, h.PartitionKey, headID, ops, &head{})
	}
	if client.IsRefused(err) {
		stored, rerr := c.readHeadByKey(ctx, h.PartitionKey)
		switch {
		case rerr != nil:
			return nil, rerr
		case stored.Fence != next.Fence:
			return nil, client.ErrStale
		}
		next, err = stored, nil
	}
	if err == nil {
		c.r.metrics.swept.WithLabelValues(sweptCabinet).Add(float64(len(p.removed)))
	}
	if err == nil && len(h.Cabinets) > c.r.opts.MaxUnfilteredCabinets && len(next.Cabinets) <= c.r.opts.MaxUnfilteredCabinets {
		// A crash before this write leaves a filter that no node reads.
		_ = c.DeleteIfExists(ctx, c.r.db.catalog, h.PartitionKey, recipientFilterID)
	}
	return next, err
}

// fenceIs returns the condition of a patch that the fence of the head is still the given one.
func fenceIs(fence string) string {
	if fence == "" {
		return "NOT IS_DEFINED(c.fence)"
	}
	return "c.fence = '" + fence + "'" // a fence is an id of client.NewID, so it needs no escaping
}

// clearDrawers removes the drawers below the floors of h. h may be stale: floors never sink.
func (c *call) clearDrawers(ctx context.Context, recipient domain.ActorID, h *head) (Swept, error) {
	var swept Swept
	cleared := make(map[cabinetName]retained, len(h.Retention))
	fresh := false
	for name, t := range h.Retention {
		if t.Cleared < t.Floor {
			cabinet, err := cabinetOf(recipient, name)
			if err != nil {
				return swept, err
			}
			if err := c.clearCabinet(ctx, cabinet, t, &swept); err != nil {
				return swept, err
			}
			t.Cleared, t.Closed, fresh = t.Floor, "", true
		}
		cleared[name] = t
	}
	if !fresh {
		return swept, nil
	}
	// A crash before this write leaves cabinets that are cleared but not marked as cleared. The next
	// sweep finds no drawers below their floors and marks them.
	_, err := c.writeRetention(ctx, h, &retentionPlan{of: cleared})
	if errors.Is(err, client.ErrStale) {
		err = nil // the retention has changed: the next sweep marks the cabinets
	}
	return swept, err
}

// clearCabinet removes the drawers below the floor of t: all drawers that have a document, and t.Closed,
// which may have none.
func (c *call) clearCabinet(ctx context.Context, cabinet domain.CabinetKey, t retained, swept *Swept) error {
	drawers, err := client.All[drawer](ctx, c.Query(c.r.db.cabinets, cabinetKey(cabinet),
		"SELECT c.id, c.ordinal, c.v FROM c WHERE c.ordinal < @floor ORDER BY c.ordinal",
		azcosmos.QueryParameter{Name: "@floor", Value: t.Floor}))
	if err != nil {
		return err
	}
	if t.Closed != "" && !slices.ContainsFunc(drawers, func(d *drawer) bool { return d.ID == t.Closed }) {
		drawers = append(drawers, &drawer{ID: t.Closed})
	}
	for _, d := range drawers {
		n, err := c.renewCall().clearDrawer(ctx, cabinet, d.ID) // each drawer has its own budget of retries
		swept.Documents += n
		if err != nil {
			return err
		}
		swept.Drawers++
		c.r.metrics.swept.WithLabelValues(sweptDrawer).Inc()
	}
	n, err := c.r.beginCall("sweep").clearItems(ctx, cabinetKey(cabinet), "SELECT c.id, c.v FROM c WHERE c.until <= @floor",
		azcosmos.QueryParameter{Name: "@floor", Value: t.Floor}) // the filters
	swept.Documents += n
	return err
}

// clearDrawer removes a drawer and the documents in its partition. It removes the document of the drawer
// last: as long as that document exists, the next sweep finds the remaining ones.
func (c *call) clearDrawer(ctx context.Context, cabinet domain.CabinetKey, id string) (int, error) {
	// A crash after any of these deletions leaves the document of the drawer. The next sweep finds it and
	// completes the deletion. Folders are deleted whether the drawer had payloads or not.
	for _, store := range []repository.Content{c.r.content, c.r.opts.Shared} {
		if store == nil {
			continue
		}
		if err := store.DeleteFolder(ctx, payloadFolder(id)); err != nil {
			return 0, err
		}
	}
	if err := c.DeleteIfExists(ctx, c.r.db.catalog, catalogKey(cabinet.Recipient, cabinet.Origin), id); err != nil {
		return 0, err
	}
	n, err := c.clearItems(ctx, id, "SELECT c.id, c.v FROM c")
	if err != nil {
		return n, err
	}
	return n, c.DeleteIfExists(ctx, c.r.db.cabinets, cabinetKey(cabinet), id)
}

// deletionUnits is the approximate cost of deleting a page.
const deletionUnits = 10

// maxBatch is the limit of Cosmos for the operations of a batch.
const maxBatch = 100

// clearItems deletes the pages and filters that a query returns from a partition.
func (c *call) clearItems(ctx context.Context, key, query string, params ...azcosmos.QueryParameter) (int, error) {
	n := 0
	for q := (*client.Query)(nil); ; {
		if q == nil {
			q = c.Query(c.r.db.cabinets, key, query, params...)
		}
		items, err := q.Next(ctx, c.BatchSize(deletionUnits, maxBatch))
		if err != nil {
			return n, err
		}
		ids, err := c.idsOf(items, key)
		if err != nil {
			return n, err
		}
		if len(ids) > 0 {
			// A crash after this write leaves some of the documents. The next sweep finds the drawer, or the
			// cabinet that is not marked as cleared, and deletes the remaining documents.
			_, err = c.Batch(ctx, c.r.db.cabinets, key, false, func(b *azcosmos.TransactionalBatch) {
				for _, id := range ids {
					b.DeleteItem(id, nil)
				}
			})
		}
		switch {
		case client.IsRefused(err): // another sweep has deleted documents, or an earlier attempt of this batch was applied
			if !c.Pause(ctx, 0) {
				return n, domain.Errorf(domain.Busy, "sweep partition %s: another sweep keeps deleting its documents: %w", key, err)
			}
			q = nil
			continue
		case err != nil:
			return n, err
		}
		n += len(ids)
		c.r.metrics.swept.WithLabelValues(sweptDocument).Add(float64(len(ids)))
		if q.IsDone() {
			return n, nil
		}
	}
}

func (c *call) idsOf(items [][]byte, key string) ([]string, error) {
	var ids []string
	for _, item := range items {
		var doc drawerItem
		if err := c.Decode(item, key, &doc); err != nil {
			return nil, err
		}
		ids = append(ids, doc.ID)
	}
	return ids, nil
}

// A sweepDoc has the time when the last sweep began. With it, only one of many nodes sweeps in an interval.
type sweepDoc struct {
	ID           string    `json:"id"`
	PartitionKey string    `json:"partitionKey"`
	Began        time.Time `json:"began"`
	Owner        string    `json:"owner"`
	client.Document
}

const (
	sweepID  = "sweep"
	sweepKey = "|sweep" // no recipient has this id
)

// isDue reports whether the next sweep is due, and claims that sweep for this node. Two nodes may claim the
// same sweep, which costs requests and does no harm.
func (r *Repository) isDue(ctx context.Context) bool {
	c := r.beginCall("sweep")
	var last sweepDoc
	etag, err := c.Read(ctx, r.db.catalog, sweepKey, sweepID, &last)
	if err != nil && !client.IsNotFound(err) {
		return false
	}
	now := r.opts.Clock()
	if since := now.Sub(last.Began); err == nil && since >= 0 && since < r.opts.SweepEvery {
		r.metrics.noteSweep(last.Began)
		return false
	}
	next := sweepDoc{ID: sweepID, PartitionKey: sweepKey, Began: now.UTC(), Owner: r.owner, Document: last.Document}
	// A crash after this write leaves a sweep that is marked as begun. Another node sweeps after
	// SweepEvery.
	if _, err = c.Put(ctx, r.db.catalog, sweepKey, sweepID, etag, &next); err != nil {
		return false
	}
	r.metrics.noteSweep(next.Began)
	return true
}

// runSweeps sweeps whenever a sweep is due, until ctx ends.
func (r *Repository) runSweeps(ctx context.Context) {
	const looks = 4 // checks in each interval between sweeps
	for client.Sleep(ctx, r.opts.SweepEvery/(2*looks)+r.client.Jitter(r.opts.SweepEvery/looks)) {
		if !r.isDue(ctx) {
			continue
		}
		began := r.opts.Clock()
		c := r.beginCall("sweep")
		c.SetBackground()
		swept, err := r.sweep(ctx, c)
		log := r.opts.Logger.With("recipients", swept.Recipients, "drawers", swept.Drawers,
			"documents", swept.Documents, "bundles", swept.Bundles, "watched", swept.Watched, "duration_ms", float64(r.opts.Clock().Sub(began).Microseconds())/1000)
		switch {
		case err == nil:
			log.InfoContext(ctx, "swept what was acknowledged")
		case ctx.Err() == nil:
			log.ErrorContext(ctx, "the sweep was not complete; the next one continues", "error", err)
		}
	}
}
