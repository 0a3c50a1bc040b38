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

// Swept contains the counts of what a sweep has processed or removed.
type Swept struct {
	Recipients int // number of recipients whose mailboxes were swept
	Drawers    int
	Documents  int // number of removed pages and filters
	Bundles    int // number of bundles that were closed under an unlimited retention and now have a time to live
	Watched    int // number of removed watched bundles
}

// Sweep removes the drawers whose events have all been acknowledged for longer than Options.Retention.
// Any number of nodes may sweep at the same time. If a sweep ends early, the next sweep completes its
// work. The error lists the first recipients that could not be swept.
func (r *Repository) Sweep(ctx context.Context) (Swept, error) {
	return r.sweep(ctx, r.beginCall("sweep"))
}

// SweepRecipient sweeps the mailbox of one recipient; see [Repository.Sweep].
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

// sweep implements Sweep. It derives its calls from c, which determines their name and their pace.
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

// maxSweepFaults limits the number of errors that a sweep returns, because an unavailable store causes an
// error for each recipient.
const maxSweepFaults = 20

// eachRecipient calls visit for every recipient that has a head. Heads in partitions that belong to no
// recipient are returned as errors at the end.
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
		q.UseCall(c.Renew()) // each result page has its own limit for retries
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

// maxCloseAttempts limits how often a sweep tries to close drawers of a recipient. To close a drawer, the
// sweep replaces the head, but a busy writer may have replaced the head first. After these attempts, the
// sweep only patches the head, and the next sweep tries to close the drawers again.
const maxCloseAttempts = 3

// raiseFloors updates the retention in the head of recipient and returns the new head. It adds the gates
// that it reads to the map gates.
//
// The head is read first. Before a floor rises, a conditional write of the gate confirms that the gate is
// current. Then the head is written, on condition that its retention has not changed. A Replay, which
// moves a gate back, writes in the opposite order: first the fence in the head, then the gate. So either
// the sweep or the Replay fails.
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

// proveCurrent confirms that a gate is current by replacing it with its next generation, on condition of
// its etag. It returns client.ErrStale if the gate is stale.
func (c *call) proveCurrent(ctx context.Context, g *gate) error {
	// If the node crashes after this write, the gate has its next generation. The next sweep confirms the
	// gate again.
	_, err := c.Put(ctx, c.r.db.bundles, g.Recipient, g.ID, g.ETag, g.confirm(c.r.client.NewID()))
	if client.IsRefused(err) {
		return client.ErrStale
	}
	return err
}

// writeRetention writes p to the head. Unless p closes a drawer or removes a cabinet, the write is a
// patch whose only condition is the fence. So it does not delay a concurrent Save, which continues with
// the current head.
func (c *call) writeRetention(ctx context.Context, h *head, p *retentionPlan) (*head, error) {
	// A crash after this write may leave drawers below a floor: no reader uses them, and the next sweep
	// deletes them. It may leave a cabinet whose last drawer is closed but not sealed: the next reader
	// seals that drawer, and the next Save begins a new one. It may leave gates with positions in removed
	// cabinets: the next sweep deletes these positions.
	next := h.setRetention(p.of, c.r.client.NewID(), p.closed, p.removed)
	var err error
	if len(p.closed)+len(p.removed) > 0 {
		_, err = c.Put(ctx, c.r.db.catalog, h.PartitionKey, headID, h.etag, next)
	} else {
		ops := client.NewPatch(headDocument, fenceIs(h.Fence))
		ops.AppendSet("/retention", json.RawMessage(client.Encode(next.Retention))) // encoded here, because azcosmos uses a different JSON encoder
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
		// If the node crashes before this write, the filter remains, but no node reads it.
		_ = c.DeleteIfExists(ctx, c.r.db.catalog, h.PartitionKey, recipientFilterID)
	}
	return next, err
}

// fenceIs returns a patch condition that requires the given fence in the head.
func fenceIs(fence string) string {
	if fence == "" {
		return "NOT IS_DEFINED(c.fence)"
	}
	return "c.fence = '" + fence + "'" // a fence is an id of client.NewID, so it contains no characters to escape
}

// clearDrawers removes the drawers below the floors of h. Because floors never decrease, h may be stale.
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
	// If the node crashes before this write, the drawers are removed, but their cabinets are not marked
	// as cleared. The next sweep finds no drawers below the floors and marks these cabinets.
	_, err := c.writeRetention(ctx, h, &retentionPlan{of: cleared})
	if errors.Is(err, client.ErrStale) {
		err = nil // the retention has changed, so the next sweep marks the cabinets
	}
	return swept, err
}

// clearCabinet removes the drawers below the floor of t: all drawers that have a document, and t.Closed,
// which may have no document.
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
		n, err := c.renewCall().clearDrawer(ctx, cabinet, d.ID) // each drawer has its own limit for retries
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
// last: as long as this document exists, the next sweep finds the drawer again.
func (c *call) clearDrawer(ctx context.Context, cabinet domain.CabinetKey, id string) (int, error) {
	// If the node crashes after any of these deletions, the document of the drawer still exists. The next
	// sweep finds it and completes the deletion. Folders are deleted whether the drawer had payloads or
	// not.
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

// deletionUnits is the approximate number of request units for deleting a page.
const deletionUnits = 10

// maxBatch is the maximum number of operations in a batch of Cosmos DB.
const maxBatch = 100

// clearItems deletes the pages and filters that a query finds in a partition.
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
			// If the node crashes after this write, some of the documents still exist. The next sweep
			// finds the drawer or the cabinet again and deletes the remaining documents.
			_, err = c.Batch(ctx, c.r.db.cabinets, key, false, func(b *azcosmos.TransactionalBatch) {
				for _, id := range ids {
					b.DeleteItem(id, nil)
				}
			})
		}
		switch {
		case client.IsRefused(err): // either another sweep has deleted documents, or an earlier attempt of this batch was applied
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

// A sweepDoc records when the last sweep began, so that only one of many nodes sweeps in each interval.
type sweepDoc struct {
	ID           string    `json:"id"`
	PartitionKey string    `json:"partitionKey"`
	Began        time.Time `json:"began"`
	Owner        string    `json:"owner"`
	client.Document
}

const (
	sweepID  = "sweep"
	sweepKey = "|sweep" // the bar ensures that this key is no recipient's id
)

// isDue reports whether the next sweep is due, and claims that sweep for this node. Two nodes may claim
// the same sweep, which costs requests but does no harm.
func (r *Repository) isDue(ctx context.Context) bool {
	c := r.beginCall("sweep")
	var last sweepDoc
	etag, err := c.Read(ctx, r.db.catalog, sweepKey, sweepID, &last)
	if err != nil && !client.IsNotFound(err) {
		return false
	}
	now := r.opts.Clock()
	if since := now.Sub(last.Began); err == nil && since >= 0 && since < r.opts.SweepEvery {
		r.metrics.recordSweepStart(last.Began)
		return false
	}
	next := sweepDoc{ID: sweepID, PartitionKey: sweepKey, Began: now.UTC(), Owner: r.owner, Document: last.Document}
	// If the node crashes after this write, the sweep counts as started although it does not run. A node
	// sweeps again after SweepEvery.
	if _, err = c.Put(ctx, r.db.catalog, sweepKey, sweepID, etag, &next); err != nil {
		return false
	}
	r.metrics.recordSweepStart(next.Began)
	return true
}

// runSweeps runs a sweep whenever one is due, until ctx ends.
func (r *Repository) runSweeps(ctx context.Context) {
	const checks = 4 // number of checks in each interval between sweeps
	for client.Sleep(ctx, r.opts.SweepEvery/(2*checks)+r.client.Jitter(r.opts.SweepEvery/checks)) {
		if r.isDue(ctx) {
			r.runSweep(ctx)
		}
	}
}

// runSweep runs one sweep, and records its result. A sweep that ends because ctx ends has no result.
func (r *Repository) runSweep(ctx context.Context) {
	began := r.opts.Clock()
	c := r.beginCall("sweep")
	c.SetBackground()
	swept, err := r.sweep(ctx, c)
	log := r.opts.Logger.With("recipients", swept.Recipients, "drawers", swept.Drawers,
		"documents", swept.Documents, "bundles", swept.Bundles, "watched", swept.Watched, "duration_ms", float64(r.opts.Clock().Sub(began).Microseconds())/1000)
	switch {
	case err == nil:
		r.metrics.sweeps.WithLabelValues(completeSweep).Inc()
		log.InfoContext(ctx, "swept what was acknowledged")
	case ctx.Err() == nil:
		r.metrics.sweeps.WithLabelValues(incompleteSweep).Inc()
		log.ErrorContext(ctx, "the sweep was not complete; the next one continues", "error", err)
	}
}
