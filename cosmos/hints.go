package cosmos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Hints make later reads short: positions, catalog entries, seals, filters. They
// are written after the answer they follow from, by a few workers and only as
// long as Run runs. One that is lost costs the next reader a repair, so failures are
// ignored and, when too many wait, new ones are dropped.
type hints struct {
	r     *Repository
	queue chan hint

	mu      sync.Mutex
	running bool
	waiting map[domain.ActorID]*outstanding
}

type hint struct {
	recipient domain.ActorID
	write     func(context.Context, *call)
}

// outstanding are the hints of one recipient that are still to be written.
type outstanding struct {
	n    int
	done chan struct{}
}

const (
	hintWorkers = 8
	hintQueue   = 1024
	hintTimeout = 10 * time.Second
	// hintPatience is how long a Peek waits for the hints of its own recipient: to
	// mend what a Dequeue is just about to write is dearer than to wait for it.
	hintPatience = 100 * time.Millisecond
)

func newHints(r *Repository) *hints {
	return &hints{r: r, queue: make(chan hint, hintQueue), waiting: make(map[domain.ActorID]*outstanding)}
}

// run writes hints until ctx ends; those that are waiting then are dropped.
func (h *hints) run(ctx context.Context) error {
	h.mu.Lock()
	h.running = true
	h.mu.Unlock()
	var g errgroup.Group
	for range hintWorkers {
		g.Go(func() error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case hint := <-h.queue:
					h.write(ctx, hint)
				}
			}
		})
	}
	_ = g.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = false
	for len(h.queue) > 0 {
		h.wrote((<-h.queue).recipient)
	}
	return nil
}

func (h *hints) write(ctx context.Context, hint hint) {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	hint.write(ctx, h.r.begin("hint"))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrote(hint.recipient)
}

// wrote notes that a hint of recipient is done with. The caller holds mu.
func (h *hints) wrote(recipient domain.ActorID) {
	o := h.waiting[recipient]
	o.n--
	if o.n == 0 {
		close(o.done)
		delete(h.waiting, recipient)
	}
}

func (h *hints) add(recipient domain.ActorID, write func(context.Context, *call)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running {
		return
	}
	select {
	case h.queue <- hint{recipient, write}:
	default:
		h.r.metrics.dropped.Inc()
		return
	}
	if h.waiting[recipient] == nil {
		h.waiting[recipient] = &outstanding{done: make(chan struct{})}
	}
	h.waiting[recipient].n++
}

// wait returns when the hints of recipient have been written, or soon after.
func (h *hints) wait(ctx context.Context, recipient domain.ActorID) {
	done := h.done(recipient)
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

// done is closed when the hints of recipient have been written that wait now; nil if
// none does.
func (h *hints) done(recipient domain.ActorID) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o := h.waiting[recipient]; o != nil {
		return o.done
	}
	return nil
}

// Settle waits until this process has written the hints that it owes for what it has
// done for recipient, or given them up, or until ctx ends. Nothing but their cost
// depends on it: it is for whoever measures that.
func (r *Repository) Settle(ctx context.Context, recipient domain.ActorID) {
	if done := r.hints.done(recipient); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// afterDequeue moves the positions of a bundle's drawers and the entries that
// point into them.
func (h *hints) afterDequeue(cabinet domain.CabinetKey, d *bundleDoc, at position) {
	h.add(cabinet.Recipient, func(ctx context.Context, c *call) {
		count := c.movePositions(ctx, cabinet, d.Ranges)
		c.moveEntries(ctx, cabinet, d, at, count)
	})
}

// movePositions moves positions up to where the bundle ended and returns what
// the last drawer holds by now, -1 if it was not learned.
func (c *call) movePositions(ctx context.Context, cabinet domain.CabinetKey, ranges []slotRange) int {
	// A crash before this write leaves positions and entries that are too low. The next Peek
	// repairs the entries, the next Dequeue in the drawer moves its position.
	results, err := c.Batch(ctx, c.r.db.cabinets, cabinetKey(cabinet), true, func(b *azcosmos.TransactionalBatch) {
		for _, s := range ranges {
			ops := client.NewPatch(drawerDocument, fmt.Sprintf("c.position < %d", s.To))
			ops.AppendSet("/position", s.To)
			b.PatchItem(s.Drawer, ops, nil)
		}
	})
	if err != nil || len(results) == 0 {
		return -1
	}
	var last drawer
	if c.Decode(results[len(results)-1].ResourceBody, cabinetKey(cabinet), &last) != nil {
		return -1
	}
	return last.Count
}

// moveEntries takes away the entries of drawers that the gate has passed. The
// entry of the drawer that it stands in moves up if the next event is known,
// goes if nothing is left, and stays, too low, if that is not known.
func (c *call) moveEntries(ctx context.Context, cabinet domain.CabinetKey, d *bundleDoc, at position, count int) {
	key := catalogKey(cabinet.Recipient, cabinet.Origin)
	entries, err := client.All[entry](ctx, c.Query(c.r.db.catalog, key,
		"SELECT * FROM c WHERE c.contentType = @type AND c.ordinal <= @ordinal",
		azcosmos.QueryParameter{Name: "@type", Value: cabinet.ContentType.String()},
		azcosmos.QueryParameter{Name: "@ordinal", Value: at.Ordinal}))
	if err != nil {
		return
	}
	entries = slices.DeleteFunc(entries, func(e *entry) bool {
		known := e.Ordinal < at.Ordinal || d.Next > 0 || count == at.Slot
		return e.NextSequence > d.Last || !known // moved already, or nothing to move it by
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

// leaveSealed seals a drawer that has been filled and left behind, and leaves its
// filter for those who were not there.
func (h *hints) leaveSealed(cabinet domain.CabinetKey, drawer string, count int, f filter) {
	h.add(cabinet.Recipient, func(ctx context.Context, c *call) {
		// A crash before this write leaves the drawer unsealed. Its next reader seals it.
		if d, err := c.seal(ctx, cabinetKey(cabinet), drawer); err == nil && d.Count == count {
			c.writeFilter(ctx, drawer, count, f)
		}
	})
}

// leaveFilter leaves the filter of a drawer that has been sealed before.
func (h *hints) leaveFilter(recipient domain.ActorID, drawer string, count int, f filter) {
	h.add(recipient, func(ctx context.Context, c *call) { c.writeFilter(ctx, drawer, count, f) })
}

// writeFilter creates the filter. If it is there, it is the same.
func (c *call) writeFilter(ctx context.Context, drawer string, count int, f filter) {
	// A crash before this write leaves a drawer without a filter. A node that needs it reads the
	// pages and writes it.
	doc := &filterDoc{ID: filterID, PartitionKey: drawer, Count: count, Filter: f}
	_, _ = c.Put(ctx, c.r.db.cabinets, drawer, filterID, "", doc)
}
