package cosmos

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// runRound stores the Saves of one batch.
func (w *recipientWriter) runRound(ctx context.Context) {
	if w.reserved == nil {
		w.awaitSaves(ctx)
		w.takeBatch()
	}
	if w.yields { // another process has marked the head as wanted
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
	w.index.shrink(w.r.indexLimit()) // needed here if callers overlap, because a writer that is never idle is not released
}

// saveOneByOne stores each Save of the batch separately, after the batch has failed: one Save may have caused
// the error, and the remaining Saves must not fail because of it.
func (w *recipientWriter) saveOneByOne(ctx context.Context) {
	all := w.batch
	w.alone = true
	for i := range all {
		w.head, w.reserved, w.batch = nil, nil, all[i:i+1:i+1]
		w.failBatch(w.saveBatch(ctx))
	}
	w.alone = false
}

// saveBatch commits the batch. It retries within the budget of one call.
func (w *recipientWriter) saveBatch(ctx context.Context) error {
	c := w.r.beginCall("save")
	w.refusals, w.headIsRead = 0, false
	err := c.Retry(ctx, func() error { return w.tryCommit(ctx, c) })
	w.dropObjects(ctx, c)
	return c.Outcome("save for "+w.recipient.String(), err)
}

// failBatch completes every Save of the batch with err; a nil err does nothing. The next writer
// rolls back what the plan left.
func (w *recipientWriter) failBatch(err error) {
	if err != nil {
		batch := w.batch
		w.head, w.reserved, w.batch = nil, nil, nil
		w.completeBatch(batch, err)
	}
}

// isTransient reports whether err has a cause other than the events to be saved.
func isTransient(err error) bool {
	switch domain.KindOf(err) {
	case domain.Busy, domain.Unavailable, domain.Uncertain, domain.NewerFormat:
		return true
	default:
		return false
	}
}

// tryCommit continues the batch from its current state to its commit.
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
		if err == nil && w.isRefused() && !w.headIsRead { // a newer head may have fewer cabinets
			err = client.ErrStale
		}
		if err != nil {
			if errors.Is(err, client.ErrStale) { // a sweep may have removed a missing drawer, which only a newer head shows
				w.head = nil
			}
			return err
		}
		if len(fresh) == 0 && !w.headIsRead {
			// Events whose ids are in memory may have been abandoned through another node, or lost in a
			// failover. A Save without new events writes nothing, so only a head that is read now shows
			// this.
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
	w.reserved = nil // the intent is stored, so a retry finds it in the head
	c.AddRetries(len(p.intent.Parts))
	if err := w.carryOut(ctx, c, p); err != nil {
		if errors.Is(err, client.ErrStale) {
			w.head = nil
		}
		return err
	}
	return w.commitPlan(ctx, c, p)
}

// findNewEvents returns the events of the batch that are new to the recipient.
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

// isRefused reports whether dedupBatch has refused a Save of the batch.
func (w *recipientWriter) isRefused() bool {
	return slices.ContainsFunc(w.batch, func(p *pendingSave) bool { return p.refused != nil })
}

// storeIntent stores the payloads of p before the intent. If the content store is unavailable, the Save
// fails without an intent, whose rollback would seal a drawer. base is w.head, possibly with flushed
// tails.
func (w *recipientWriter) storeIntent(ctx context.Context, c *call, base *head, p *savePlan) error {
	// A crash after this write leaves objects that no document refers to. The sweep deletes them with
	// their drawer. If their drawer is never created, the objects are never deleted.
	if err := w.putPayloads(ctx, p); err != nil {
		w.dropPayloads(ctx, p)
		return err
	}
	// A crash after the write of the head leaves the intent. The next writer rolls it back.
	var cutting sync.WaitGroup
	cutting.Go(func() { p.batches() }) // encodes the pages concurrently with the write of the intent
	err := w.writeHead(ctx, c, base.reservePlan(p))
	cutting.Wait()
	if errors.Is(err, client.ErrStale) || err != nil && !c.InDoubt() { // the intent was not stored
		w.dropPayloads(ctx, p)
	}
	return err
}

// commitPlan makes p visible. If more Saves are queued and no other process waits for the head, the same
// write also appends their events to the tails, or reserves an intent if they are large.
func (w *recipientWriter) commitPlan(ctx context.Context, c *call, p *savePlan) error {
	done, wanted := w.batch, w.head.Wanted != ""
	w.batch = nil
	next := w.head.commitIntent(p.fronts)
	var following, appended *savePlan
	if !wanted && !w.alone {
		w.takeBatch()
		next, following, appended = w.planNext(next, p)
	}
	// A crash before this write leaves the intent of p, which the next writer rolls back. A crash after
	// this write leaves visible events, which count as duplicates when they are sent again, and the
	// intent of the following plan, which the next writer rolls back.
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
		if !c.Pause(ctx, 0) { // stale reads may return the replaced head again for a while
			w.head, err = nil, client.ErrStale
			break
		}
		if appended != nil { // the refused write has not saved these events
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

// planNext plans the Saves that were queued while p was carried out. It makes no request, because the
// commit of p waits for the plan; if a request is needed, it plans nothing. It returns committed with the
// intent of the following plan, or with the events of appended in its tails.
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

// makePlan assigns the numbers and slots after those in h to the new events.
func (w *recipientWriter) makePlan(h *head, fresh []numberedEvent) *savePlan {
	p := planSave(h, fresh, w.r.opts.DrawerCapacity, w.r.owner, w.r.client.NewID)
	p.intent.Saved = millisOf(w.r.opts.Clock())
	p.batches = sync.OnceValue(p.pageBatches)
	return p
}

// carryOut writes the pages, counts and entries of p. The events of p become visible by commitPlan.
func (w *recipientWriter) carryOut(ctx context.Context, c *call, p *savePlan) error {
	if err := w.insertPages(ctx, c, p); err != nil {
		return err
	}
	begun := p.entriesReady()
	var wasEmpty []bool
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.writeEntries(gctx, c, p, begun) })
	g.Go(func() (err error) {
		wasEmpty, err = w.countEvents(gctx, c, p)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	p.fronts = w.frontsOf(wasEmpty)
	for i := range wasEmpty {
		wasEmpty[i] = wasEmpty[i] && !p.isFront(i) || p.intent.Parts[i].New && !begun[i]
	}
	return w.writeEntries(ctx, c, p, wasEmpty)
}

// readHead reads w.head unless it is set. The head may be stale.
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
	if h.Watermark < w.newest { // a stale read, or the store has lost a newer head
		w.compared, w.probed = nil, nil
		if !w.r.db.ReadsMayBeStale() {
			w.forgetLost(ctx, h)
		}
	}
	w.newest = max(w.newest, h.Watermark)
	return nil
}

// forgetAbandoned resets the index if events were abandoned since it was created: an abandoned event that
// is sent again is not a duplicate.
func (w *recipientWriter) forgetAbandoned(h *head) {
	if h.Abandoned != w.abandoned {
		w.index, w.abandoned = newIndex(w.recipient, w.r.indexLimit()), h.Abandoned
	}
}

// forgetLost resets the state of w after a loss of the head; h is the current head. A lost event that is
// sent again is not a duplicate, and h may be behind a gate.
func (w *recipientWriter) forgetLost(ctx context.Context, h *head) {
	w.r.opts.Logger.ErrorContext(ctx, "the store has lost a newer head of the recipient; events may be lost",
		"recipient", w.recipient.String(), "watermark", int64(h.Watermark), "before", int64(w.newest))
	w.r.known.forgetRecipient(w.recipient)
	w.index, w.newest = newIndex(w.recipient, w.r.indexLimit()), h.Watermark
	w.compared, w.probed = nil, nil
}

// errIntentUnchanged reports that the head was not replaced because another process has changed it, but
// that the head still has the same intent: it was marked as wanted, or the retention has changed.
var errIntentUnchanged = errors.New("the head has changed, but its intent has not")

// writeHead replaces w.head by h, or fails with client.ErrStale if w.head is not current. A 409 or 412 is
// ambiguous: an earlier attempt of this write may have been applied. So writeHead reads the head back. If
// the head has the id of this write, the write succeeds, and w.head becomes the head that was read,
// because the retention may have changed since. If the head has the same intent as w.head, w.head becomes
// the head that was read, and the error is errIntentUnchanged.
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
	if before.Watermark < w.newest { // the write has proved that before was current
		w.forgetLost(ctx, h)
	}
	w.newest = max(w.newest, h.Watermark)
	w.r.known.observeHead(w.recipient, h)
	return nil
}
