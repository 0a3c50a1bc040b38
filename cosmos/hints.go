package cosmos

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Hints make later reads cheaper. They are positions, catalog entries, seals and filters. Writers, which
// are goroutines that start on demand while run is active, write the hints of a call after its reply. One
// writer writes the hints of a recipient in order, so that they do not conflict in its partitions. A lost
// hint only costs the next reader a repair. So failures are ignored, and new hints are dropped while
// maxHints wait.
type hints struct {
	r       *Repository
	writers sync.WaitGroup

	mu      sync.Mutex
	running context.Context //nolint:containedctx // the context of run; nil: no hint is written
	busy    int             // number of writers
	count   int             // number of hints that are not written yet
	of      map[domain.ActorID]*recipientHints
	queue   *list.List // *recipientHints that wait for a writer, the oldest first
}

// recipientHints contains the hints of one recipient that are not written yet.
type recipientHints struct {
	recipient domain.ActorID
	pending   []func(context.Context, *call)
	queued    *list.Element // element in hints.queue; nil if the hints have a writer
	done      chan struct{} // closed when all hints are written or dropped
}

const (
	// hintWriters is the limit for the writers that add starts; awaitHints may start more. A hint takes
	// three requests, so these writers write several thousand hints a second.
	hintWriters = 128
	maxHints    = 4096
	hintTimeout = 10 * time.Second
	// hintPatience limits how long a Peek waits for the hints of its own recipient. The wait costs less
	// than the repair of hints that a Dequeue has not written yet.
	hintPatience = 100 * time.Millisecond
)

func newHints(r *Repository) *hints {
	return &hints{r: r, of: make(map[domain.ActorID]*recipientHints), queue: list.New()}
}

// run lets writers write hints until ctx ends. It then drops the waiting hints.
func (h *hints) run(ctx context.Context) error {
	h.mu.Lock()
	h.running = ctx
	h.mu.Unlock()
	<-ctx.Done()
	h.mu.Lock()
	h.running = nil
	h.mu.Unlock()
	h.writers.Wait()
	return nil
}

// add queues the write of a hint of recipient, or drops the hint if maxHints wait.
func (h *hints) add(recipient domain.ActorID, write func(context.Context, *call)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		return
	}
	if h.count == maxHints {
		h.r.metrics.dropped.Inc()
		return
	}
	h.count++
	of := h.of[recipient]
	if of == nil {
		of = &recipientHints{recipient: recipient, done: make(chan struct{})}
		of.queued = h.queue.PushBack(of)
		h.of[recipient] = of
	}
	of.pending = append(of.pending, write)
	if of.queued != nil && h.busy < hintWriters {
		h.startWriter(of)
	}
}

// startWriter starts a writer for queued hints. The caller holds mu. run waits for the writer, which
// ends with the context of run.
//
//nolint:contextcheck,nolintlint // a caller's context ends before the hint is written
func (h *hints) startWriter(of *recipientHints) {
	h.queue.Remove(of.queued)
	of.queued = nil
	h.busy++
	ctx := h.running
	h.writers.Go(func() {
		for hint := h.nextHint(ctx, of); hint != nil; hint = h.nextHint(ctx, of) {
			h.writeHint(ctx, hint)
		}
	})
}

// nextHint returns the next hint of one recipient to its writer. If it returns nil, the writer must end;
// nextHint has then started other writers if hints are queued.
func (h *hints) nextHint(ctx context.Context, of *recipientHints) func(context.Context, *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(of.pending) > 0 && ctx.Err() == nil {
		hint := of.pending[0]
		of.pending = of.pending[1:]
		h.count--
		return hint
	}
	h.dropHints(of)
	h.busy--
	for front := h.queue.Front(); front != nil && h.busy < hintWriters; front = h.queue.Front() {
		waiting := front.Value.(*recipientHints)
		if h.running != nil {
			h.startWriter(waiting)
			continue
		}
		h.queue.Remove(front)
		h.dropHints(waiting)
	}
	return nil
}

// dropHints drops the unwritten hints of a recipient. The caller holds mu.
func (h *hints) dropHints(of *recipientHints) {
	h.count -= len(of.pending)
	delete(h.of, of.recipient)
	close(of.done)
}

func (h *hints) writeHint(ctx context.Context, hint func(context.Context, *call)) {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	hint(ctx, h.r.beginCall("hint"))
}

// awaitHints returns when the hints of recipient have been written, or after hintPatience. If these hints
// wait for a writer, awaitHints starts one, so that no Peek waits for the hints of other recipients.
func (h *hints) awaitHints(ctx context.Context, recipient domain.ActorID) {
	h.mu.Lock()
	if of := h.of[recipient]; of != nil && of.queued != nil && h.running != nil {
		h.startWriter(of)
	}
	h.mu.Unlock()
	done := h.writtenSignal(recipient)
	if done == nil {
		return
	}
	patience := time.NewTimer(hintPatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	case <-ctx.Done():
	}
}

// writtenSignal returns a channel that is closed when the current hints of recipient have been written or
// dropped. It returns nil if recipient has no hints to write.
func (h *hints) writtenSignal(recipient domain.ActorID) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if of := h.of[recipient]; of != nil {
		return of.done
	}
	return nil
}

// AwaitHints waits until this process has written or dropped the hints that result from earlier calls for
// recipient, or until ctx ends. Hints affect only the cost of later calls: AwaitHints is for callers that
// measure the cost.
func (r *Repository) AwaitHints(ctx context.Context, recipient domain.ActorID) {
	if done := r.hints.writtenSignal(recipient); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// afterDequeue moves the positions of a bundle's drawers, and the entries of these drawers. It skips
// drawers whose events in the bundle were all in the tail: no entry points at these events, and the
// drawers may have no document.
func (h *hints) afterDequeue(cabinet domain.CabinetKey, d *bundleDoc, at position) {
	paged := slices.DeleteFunc(slices.Clone(d.Ranges), func(s slotRange) bool { return s.InTail })
	if len(paged) == 0 {
		return
	}
	h.add(cabinet.Recipient, func(ctx context.Context, c *call) {
		last := c.movePositions(ctx, cabinet, paged)
		if !c.r.usesEntries() {
			return
		}
		if d.Next == 0 && last != nil && !last.Sealed && max(d.Start.Ordinal, 1) == at.Ordinal {
			return // the entry remains too low until a Save raises it or the gate moves past the drawer
		}
		count := -1
		if last != nil {
			count = last.Count
		}
		c.moveEntries(ctx, cabinet, d, at, count)
	})
}

// movePositions moves the positions of drawers to the end of a bundle, and returns the updated document of
// the last drawer, or nil if it is unknown.
func (c *call) movePositions(ctx context.Context, cabinet domain.CabinetKey, ranges []slotRange) *drawer {
	// A crash before this write leaves positions and entries that are too low. The next Peek repairs the
	// entries, and the next Dequeue in a drawer moves the position of the drawer.
	results, err := c.Batch(ctx, c.r.db.cabinets, cabinetKey(cabinet), true, func(b *azcosmos.TransactionalBatch) {
		for _, s := range ranges {
			ops := client.NewPatch(drawerDocument, fmt.Sprintf("c.position < %d", s.To))
			ops.AppendSet("/position", s.To)
			b.PatchItem(s.Drawer, ops, nil)
		}
	})
	if err != nil || len(results) == 0 {
		return nil
	}
	var last drawer
	if c.Decode(results[len(results)-1].ResourceBody, cabinetKey(cabinet), &last) != nil {
		return nil
	}
	return &last
}

// moveEntries deletes the entries of drawers that the gate has passed. If the next event is known, it
// raises the entry of the drawer at the gate's position. If the drawer has no more events, it deletes this
// entry. Otherwise this entry remains too low.
func (c *call) moveEntries(ctx context.Context, cabinet domain.CabinetKey, d *bundleDoc, at position, count int) {
	key := catalogKey(cabinet.Recipient, cabinet.Origin)
	entries, err := client.All[catalogEntry](ctx, c.Query(c.r.db.catalog, key,
		"SELECT * FROM c WHERE c.contentType = @type AND c.ordinal <= @ordinal",
		azcosmos.QueryParameter{Name: "@type", Value: cabinet.ContentType.String()},
		azcosmos.QueryParameter{Name: "@ordinal", Value: at.Ordinal}))
	if err != nil {
		return
	}
	entries = slices.DeleteFunc(entries, func(e *catalogEntry) bool {
		known := e.Ordinal < at.Ordinal || d.Next > 0 || 0 <= count && count <= at.Slot
		return e.NextSequence > d.Last || !known // the entry was already moved, or the next event is unknown
	})
	if len(entries) == 0 {
		return
	}
	// A crash before this write leaves entries that are too low; the next Peek repairs them.
	_, _ = c.Batch(ctx, c.r.db.catalog, key, false, func(b *azcosmos.TransactionalBatch) {
		for _, e := range entries[:min(len(entries), batchPages)] {
			etag := e.ETag
			if e.Ordinal < at.Ordinal || d.Next == 0 {
				b.DeleteItem(e.ID, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
				continue
			}
			e.NextSequence, e.ETag = d.Next, ""
			putInBatch(b, e.ID, etag, client.Encode(e))
		}
	})
}

// addSealed adds a hint that seals a full drawer, and stores its filter and the filters of the blocks that
// end with this drawer.
func (h *hints) addSealed(cabinet domain.CabinetKey, f *drawerFilter, known *storedFilter, merged mergedBlocks, floor int) {
	h.add(cabinet.Recipient, func(ctx context.Context, c *call) {
		// A crash before this write leaves the drawer unsealed. The next reader seals it.
		d, err := c.sealDrawer(ctx, cabinetKey(cabinet), f.drawer)
		if err != nil || d.Count != f.count || c.writeDrawerFilter(ctx, cabinet, f, known) != nil {
			return
		}
		for _, sets := range merged.sets {
			if c.writeMerged(ctx, cabinet, sets) != nil {
				return
			}
		}
		h.mergeBlocks(ctx, c, cabinet, merged.next, 0, f.ordinal+1, floor)
	})
}

// addFilter adds a hint that stores the filter of a drawer.
func (h *hints) addFilter(cabinet domain.CabinetKey, f *drawerFilter, known *storedFilter) {
	h.add(cabinet.Recipient, func(ctx context.Context, c *call) { _ = c.writeDrawerFilter(ctx, cabinet, f, known) })
}

// addRecipientFilter adds a hint that stores the filter of a recipient.
func (h *hints) addRecipientFilter(recipient domain.ActorID, drawers []filteredDrawer, known *storedRecipientFilter) {
	h.add(recipient, func(ctx context.Context, c *call) { _ = known.writeFilter(ctx, c, recipient, drawers) })
}

// addMerged adds a hint that merges the filters of the children of b and stores the result.
func (h *hints) addMerged(cabinet domain.CabinetKey, b block, children *[fanOut]*fingerprintSet) {
	h.add(cabinet.Recipient, func(ctx context.Context, c *call) {
		_ = c.writeMerged(ctx, cabinet, mergeSets(b, children))
	})
}

// mergesPerHint limits the duration of a hint. A merge takes two requests.
const mergesPerHint = 50

// mergeBlocks merges the filters of b and of its ancestors, up to the first that does not end at the
// ordinal end. It begins with the segment from of the children of b. After mergesPerHint merges, it
// continues in another hint.
func (h *hints) mergeBlocks(ctx context.Context, c *call, cabinet domain.CabinetKey, b block, from, end, floor int) {
	for range mergesPerHint {
		if b.endOrdinal() != end || b.level > maxBlockLevel {
			return
		}
		merged, err := c.mergeSegment(ctx, cabinet, b, from, floor)
		if err != nil || !merged {
			return
		}
		if from++; from == b.child(0).segmentCount() {
			b, from = b.parent(), 0
		}
	}
	h.add(cabinet.Recipient, func(ctx context.Context, c *call) { h.mergeBlocks(ctx, c, cabinet, b, from, end, floor) })
}
