package cosmos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Save implements repository.DataAvailable.
func (r *Repository) Save(ctx context.Context, recipient domain.ActorID, events []domain.Event) (repository.Saved, error) {
	for i := range events {
		if events[i].Recipient != recipient {
			return repository.Saved{}, domain.Errorf(domain.Invalid, "save: event %d is for %s, not for %s", i, events[i].Recipient, recipient)
		}
		err := events[i].Check()
		if err == nil {
			_, err = r.opts.Groups.GroupOf(events[i].Origin)
		}
		if err != nil {
			return repository.Saved{}, fmt.Errorf("save: event %d: %w", i, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return repository.Saved{}, domain.Errorf(domain.Unavailable, "save: %w", err)
	}
	if len(events) == 0 {
		return repository.Saved{}, nil
	}
	w := r.writers.acquire(recipient)
	defer r.writers.release(w)
	p := newPending(events)
	if span := domain.TraceContextOf(ctx).Stored(); r.opts.StoreTraces && !span.IsZero() {
		p.span = &span
	}
	return w.save(ctx, p)
}

// runRound saves one batch of queued Saves.
func (w *recipientWriter) runRound(ctx context.Context) {
	if w.reserved == nil {
		w.awaitSaves(ctx)
		w.takeBatch()
	}
	if w.yields { // another process has requested the head, so let it write first
		w.yields, w.head = false, nil
		client.Sleep(ctx, leasePoll)
	}
	err := w.saveBatch(ctx)
	if err != nil && len(w.batch) > 1 && !isTransient(err) {
		w.saveOneByOne(ctx)
	} else {
		w.failBatch(err)
	}
	w.index.endSave()
	w.index.shrink(w.r.indexLimit()) // shrink here, too, because a writer with overlapping callers is never released
}

// saveOneByOne saves each Save of the batch separately after the batch has failed. If one Save has caused
// the error, the remaining Saves then succeed.
func (w *recipientWriter) saveOneByOne(ctx context.Context) {
	all := w.batch
	w.alone = true
	for i := range all {
		w.head, w.reserved, w.batch = nil, nil, all[i:i+1:i+1]
		w.failBatch(w.saveBatch(ctx))
	}
	w.alone = false
}

// saveBatch commits the batch. All its requests share the limit for retries of one call.
func (w *recipientWriter) saveBatch(ctx context.Context) error {
	c := w.r.beginCall("save")
	w.refusals, w.headIsRead = 0, false
	err := c.Retry(ctx, func() error { return w.tryCommit(ctx, c) })
	w.dropObjects(ctx, c)
	return c.Outcome("save for "+w.recipient.String(), err)
}

// failBatch completes every Save of the batch with err, unless err is nil. The next writer rolls back an
// intent of the batch.
func (w *recipientWriter) failBatch(err error) {
	if err != nil {
		batch := w.batch
		w.head, w.reserved, w.batch = nil, nil, nil
		w.completeBatch(batch, err)
	}
}

// isTransient reports whether err has a cause other than the events to save.
func isTransient(err error) bool {
	switch domain.KindOf(err) {
	case domain.Busy, domain.Unavailable, domain.Uncertain, domain.NewerFormat:
		return true
	default:
		return false
	}
}

// tryCommit resumes the batch in its current state and commits it.
func (w *recipientWriter) tryCommit(ctx context.Context, c *call) error {
	gates, err := w.readHeadAndGates(ctx, c)
	if err != nil {
		return err
	}
	p := w.reserved
	if p == nil {
		if w.head.Intent != nil {
			return w.resolveIntent(ctx, c)
		}
		if err := w.compareGates(ctx, c, gates); err != nil {
			if errors.Is(err, client.ErrStale) {
				w.head = nil
			}
			return err
		}
		fresh, err := w.findNewEvents(ctx, c)
		if err != nil {
			if errors.Is(err, client.ErrStale) { // a drawer may be missing because a sweep has removed it, so read a newer head
				w.head = nil
			}
			return err
		}
		if len(fresh) == 0 && !w.headIsRead {
			// The index may contain events that were abandoned through another node or lost in a
			// failover. A newer head may contain fewer cabinets, so that a rejected Save is accepted. A
			// batch without new events writes nothing, so the head is read again to detect this.
			w.head = nil
			return w.tryCommit(ctx, c)
		}
		if len(fresh) == 0 {
			w.completeBatch(w.batch, nil)
			w.batch = nil
			return nil
		}
		var base, appended *head
		base, p, appended, err = w.makeRoom(ctx, c, fresh)
		if err != nil {
			if errors.Is(err, client.ErrStale) {
				w.head = nil
			}
			return err
		}
		if appended != nil {
			return w.saveSmall(ctx, c, base, p)
		}
		if err := w.storeIntent(ctx, c, base, p); err != nil {
			return err
		}
	}
	w.reserved = nil // the intent is stored, so the next attempt finds it in the head
	c.AddRetries(len(p.intent.Parts))
	if err := w.carryOut(ctx, c, p); err != nil {
		if errors.Is(err, client.ErrStale) {
			w.head = nil
		}
		return err
	}
	return w.commitPlan(ctx, c, p)
}

// findNewEvents returns the events of the batch that the recipient has not received yet.
func (w *recipientWriter) findNewEvents(ctx context.Context, c *call) ([]numberedEvent, error) {
	ids := batchIDs(w.batch)
	if err := w.refreshIndex(ctx, c, ids); err != nil {
		return nil, err
	}
	received, err := w.index.find(ctx, c, ids)
	if err != nil {
		return nil, err
	}
	return w.dedupBatch(w.batch, nil, func(id domain.EventID) (domain.Digest, bool, error) {
		digest, ok := received[id]
		return digest, ok, nil
	})
}

// storeIntent stores the payloads of p and then the intent. If the content store is unavailable, the Save
// fails before the intent is stored, so no rollback has to seal a drawer. base is w.head, possibly with
// flushed tails.
func (w *recipientWriter) storeIntent(ctx context.Context, c *call, base *head, p *savePlan) error {
	// A crash after this write leaves objects that no document refers to. The sweep that removes their
	// drawer deletes them. If the drawer is never created, the objects are never deleted.
	if err := w.putPayloads(ctx, p); err != nil {
		w.dropPayloads(ctx, p)
		return err
	}
	// A crash after the write of the head leaves the intent, which the next writer rolls back.
	var cutting sync.WaitGroup
	cutting.Go(func() { p.batches() }) // encodes the pages while the intent is being written
	err := w.writeHead(ctx, c, base.reservePlan(p))
	cutting.Wait()
	if errors.Is(err, client.ErrStale) || err != nil && !c.InDoubt() { // the intent was not stored
		w.dropPayloads(ctx, p)
	}
	return err
}

// commitPlan makes the events of p visible. If more Saves are queued, and no other process has requested
// the head, the same write appends their events to the tails or, if they are large, stores their intent.
func (w *recipientWriter) commitPlan(ctx context.Context, c *call, p *savePlan) error {
	done, wanted := w.batch, w.head.Wanted != ""
	w.batch = nil
	next := w.head.commitIntent(p.fronts)
	var following, appended *savePlan
	if !wanted && !w.alone {
		w.takeBatch()
		next, following, appended = w.planNext(next, p)
	}
	// If the node crashes before this write, the next writer rolls back the intent of p. If it crashes
	// afterwards, the events are visible and count as duplicates when they are sent again, and the next
	// writer rolls back the intent of the following plan.
	for _, save := range done {
		save.beginAttempt()
	}
	if appended != nil {
		for _, save := range w.batch {
			save.beginAttempt()
		}
	}
	err := w.writeHead(ctx, c, next)
	for errors.Is(err, errIntentUnchanged) {
		if !c.Pause(ctx, 0) { // stale reads may return the replaced head for some time
			w.head, err = nil, client.ErrStale
			break
		}
		if appended != nil { // the refused write has not saved the events of these Saves
			for _, save := range w.batch {
				save.endAttempt()
			}
		}
		wanted, following, appended = w.head.Wanted != "", nil, nil
		err = w.writeHead(ctx, c, w.head.commitIntent(p.fronts))
	}
	if err != nil {
		w.batch = append(done, w.batch...)
		return err
	}
	w.index.add(w.r, p, false)
	w.savedSmall = time.Time{}
	if appended != nil {
		w.index.add(w.r, appended, true)
		w.savedSmall = time.Now()
		done, w.batch = append(done, w.batch...), nil
	}
	w.index.storeFilters(w.r, w.head)
	w.reserved, w.yields = following, wanted
	w.completeBatch(done, nil)
	return nil
}

// planNext plans the Saves that were queued while p was carried out. It sends no request, because the
// commit of p waits for the plan. If a request is needed, it plans nothing. Otherwise the returned head
// is committed with either the intent of the following plan, or the events of appended in its tails.
func (w *recipientWriter) planNext(committed *head, p *savePlan) (next *head, following, appended *savePlan) {
	if len(w.batch) == 0 {
		return committed, nil, nil
	}
	if groups, err := w.uncomparedGroups(); err != nil || len(groups) > 0 || len(w.unprobedCabinets()) > 0 {
		return committed, nil, nil
	}
	for _, save := range w.batch {
		for i := range save.events {
			if save.events[i].Payload != nil {
				return committed, nil, nil
			}
		}
	}
	fresh, err := w.dedupBatch(w.batch, p, w.index.lookUpCached)
	if err != nil || len(fresh) == 0 {
		return committed, nil, nil
	}
	plan := w.makePlan(committed, fresh)
	small, full, err := w.fitTails(committed, plan)
	switch {
	case err != nil || full != "":
		return committed, nil, nil
	case small != nil:
		return small, nil, plan
	}
	return committed.reservePlan(plan), plan, nil
}

// makePlan assigns numbers and slots to the new events, following the last ones in h.
func (w *recipientWriter) makePlan(h *head, fresh []numberedEvent) *savePlan {
	p := planSave(h, fresh, w.r.opts.DrawerCapacity, w.r.owner, w.r.client.NewID)
	p.intent.Saved = millisOf(w.r.opts.Clock())
	p.batches = sync.OnceValue(p.pageBatches)
	return p
}

// carryOut writes the pages, counts and entries of p. Then commitPlan makes the events visible.
func (w *recipientWriter) carryOut(ctx context.Context, c *call, p *savePlan) error {
	if err := w.insertPages(ctx, c, p); err != nil {
		return err
	}
	ready := p.entriesReady()
	var wasEmpty []bool
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.writeEntries(gctx, c, p, ready) })
	g.Go(func() (err error) {
		wasEmpty, err = w.countEvents(gctx, c, p)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	p.fronts = w.frontsOf(wasEmpty)
	for i := range wasEmpty {
		wasEmpty[i] = wasEmpty[i] && !p.isFront(i) || p.intent.Parts[i].New && !ready[i]
	}
	return w.writeEntries(ctx, c, p, wasEmpty)
}

// readHead reads the head of the recipient unless w.head is set. The head may be stale.
func (w *recipientWriter) readHead(ctx context.Context, c *call) error {
	if w.head != nil {
		return nil
	}
	w.reserved = nil
	h, err := c.readHead(ctx, w.recipient)
	if err != nil {
		return err
	}
	w.head, w.headIsRead = h, true
	w.forgetAbandoned(h)
	if h.Watermark < w.newest { // either the read is stale, or the store has lost a newer head
		w.compared, w.probed = nil, nil
		if !w.r.db.ReadsMayBeStale() {
			w.forgetLost(ctx, h)
		}
	}
	w.newest = max(w.newest, h.Watermark)
	return nil
}

// forgetAbandoned resets the index if events were abandoned since it was created, because an abandoned
// event that is sent again is not a duplicate.
func (w *recipientWriter) forgetAbandoned(h *head) {
	if h.Abandoned != w.abandoned {
		w.index, w.abandoned = newIndex(w.recipient, w.r.indexLimit()), h.Abandoned
	}
}

// forgetLost resets the state of w after the store has lost a newer head than h. A lost event that is
// sent again is not a duplicate, and h may be behind a gate.
func (w *recipientWriter) forgetLost(ctx context.Context, h *head) {
	w.r.opts.Logger.ErrorContext(ctx, "the store has lost a newer head of the recipient; events may be lost",
		"recipient", w.recipient.String(), "watermark", int64(h.Watermark), "before", int64(w.newest))
	w.r.known.forgetRecipient(w.recipient)
	w.index, w.newest = newIndex(w.recipient, w.r.indexLimit()), h.Watermark
	w.compared, w.probed = nil, nil
}

// errIntentUnchanged reports that the head was not replaced because another process has changed it, but
// has preserved its intent. The other process has requested the head or updated the retention.
var errIntentUnchanged = errors.New("the head has changed, but its intent has not")

// writeHead replaces w.head with h, or fails with client.ErrStale if w.head is not current. After a 409
// or 412, an earlier attempt of this write may have been applied, so writeHead reads the head. If the
// head has the id of this write, the write has succeeded. If the head has the same intent as w.head, the
// error is errIntentUnchanged. In these two cases, w.head becomes the head that was read.
func (w *recipientWriter) writeHead(ctx context.Context, c *call, h *head) error {
	h.setWriteID(w.r.client.NewID())
	before := w.head
	etag, err := c.Put(ctx, w.r.db.catalog, h.PartitionKey, headID, before.etag, h)
	if client.IsRefused(err) {
		stored, rerr := c.readHead(ctx, w.recipient)
		switch {
		case rerr != nil:
			err = rerr
		case stored.WriteID.ID == h.WriteID.ID:
			h, etag, err = stored, stored.etag, nil
		case before.intentStands(stored):
			w.head = stored
			return errIntentUnchanged
		default:
			err = client.ErrStale
		}
	}
	if err != nil {
		w.head = nil
		return err
	}
	h.etag = etag
	w.head = h
	w.forgetAbandoned(h)
	if before.Watermark < w.newest { // the write was conditional, so before was current
		w.forgetLost(ctx, h)
	}
	w.newest = max(w.newest, h.Watermark)
	w.r.known.observeHead(w.recipient, h)
	return nil
}
