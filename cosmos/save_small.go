package cosmos

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Save is small if its events fit into the tails of their cabinets. One conditional replacement of the
// head makes the events visible, without an intent. If a tail does not have enough room, the events that
// it contains are first flushed to a page, and the replacement of the head removes them from the tail. All
// other Saves are large: the tails of their cabinets are flushed before the intent is stored.

// The limits for the total size of a head and its tails. A head has up to about 8 KB, because each KB
// increases the cost of a write.
const (
	headBytes   = 8 << 10
	minAllTails = 3 << 10
	maxAllTails = 4 << 10
)

// makeRoom flushes the tails that are too full for the fresh events. It returns the plan of the events
// and base, which is w.head without the flushed tails. next is base with the events of a small Save, or
// nil if the Save is large.
func (w *recipientWriter) makeRoom(ctx context.Context, c *call, fresh []numberedEvent) (base *head, p *savePlan, next *head, err error) {
	base = w.head
	for {
		p = w.makePlan(base, fresh)
		var full cabinetName
		next, full, err = w.fitTails(base, p)
		if err != nil || full == "" {
			return base, p, next, err
		}
		if base, err = c.flushTail(ctx, w.recipient, base, full); err != nil {
			return nil, nil, nil, err
		}
	}
}

// fitTails returns h with the events of p in its tails, or nil if p is large. If a tail must be flushed
// first, full is the name of its cabinet.
func (w *recipientWriter) fitTails(h *head, p *savePlan) (next *head, full cabinetName, err error) {
	if !w.isSmall(p) {
		for i := range p.intent.Parts {
			if name := p.intent.Parts[i].Cabinet; len(h.Cabinets[name].Tail) > 0 {
				return nil, name, nil
			}
		}
		return nil, "", nil
	}
	for i := range p.intent.Parts {
		part := &p.intent.Parts[i]
		last := h.Cabinets[part.Cabinet]
		if len(last.Tail) > 0 && (part.New || last.tailLen()+part.Count > w.r.opts.TailEvents) {
			return nil, part.Cabinet, nil
		}
	}
	next, err = h.appendTails(w.recipient, p, w.storedEvents(p))
	if err != nil {
		return nil, "", err
	}
	if n := next.tailBytes(); n <= minAllTails || n <= min(maxAllTails, headBytes-(len(client.Encode(next))-n)) {
		return next, "", nil
	}
	return nil, h.longestTail(), nil
}

// isSmall reports whether the events of each cabinet fit into one drawer and one tail, and all events of
// p fit into the head.
func (w *recipientWriter) isSmall(p *savePlan) bool {
	limit := w.r.opts.TailEvents
	if limit <= 0 {
		return false
	}
	seen := make(map[cabinetName]bool, len(p.intent.Parts))
	size := 0
	for i := range p.intent.Parts {
		part := &p.intent.Parts[i]
		if part.Count > limit || seen[part.Cabinet] {
			return false
		}
		seen[part.Cabinet] = true
		size += part.Count * tailEventBytes
	}
	return size <= minAllTails
}

// tailEventBytes is the approximate size of an event in a tail, without its payload.
const tailEventBytes = 55

// longestTail returns the cabinet of h with the most events in its tail, or "" if all tails are empty.
func (h *head) longestTail() cabinetName {
	var longest cabinetName
	n := 0
	for name, c := range h.Cabinets {
		if l := c.tailLen(); l > n || l == n && l > 0 && name < longest {
			longest, n = name, l
		}
	}
	return longest
}

// storedEvents returns the events of each part of p in the form in which a tail stores them. An event
// whose payload was stored contains the name of the payload object.
func (w *recipientWriter) storedEvents(p *savePlan) [][]storedEvent {
	all := make([][]storedEvent, len(p.events))
	for i, events := range p.events {
		object, offset := w.objects[p.intent.Parts[i].Cabinet].name, int64(0)
		if object == "" {
			object = payloadFolder(p.intent.Parts[i].Drawer) + "/" + p.intent.ID
		}
		for _, e := range events {
			s := storedEvent{digest: e.digest}
			s.Event, s.Sequence, s.Saved = *e.Event, e.sequence, p.intent.Saved.toTime()
			s.Payload = nil
			if e.Payload != nil {
				s.PayloadAt = repository.Section{Object: object, Offset: offset, Length: int64(len(e.Payload)), Sum: repository.SumOf(e.Payload)}
				offset += s.PayloadAt.Length
			}
			all[i] = append(all[i], s)
		}
	}
	return all
}

// saveSmall stores the payloads of p and replaces the head with next, whose tails contain the events of
// p.
func (w *recipientWriter) saveSmall(ctx context.Context, c *call, base *head, p *savePlan) error {
	// A crash after these writes leaves objects that no document refers to. The sweep that removes their
	// drawer deletes them. If the drawer is never created, the objects are never deleted.
	if err := w.putObjects(ctx, p); err != nil {
		return err
	}
	next, err := base.appendTails(w.recipient, p, w.storedEvents(p))
	if err != nil {
		return err
	}
	wanted := base.Wanted != "" && base.Wanted != w.r.owner
	for _, save := range w.batch {
		save.beginAttempt()
	}
	// If the node crashes after this write, the events are visible. They count as duplicates when they
	// are sent again.
	if err := w.writeHead(ctx, c, next); err != nil {
		if errors.Is(err, client.ErrStale) {
			// Another node has replaced the head. If the next attempt finds an event of this Save, it
			// counts the event as a duplicate: this write may have been based on a stale head, so the
			// event may have been received earlier.
			for _, save := range w.batch {
				save.endAttempt()
			}
			w.requestHead(ctx, c)
		}
		return err
	}
	w.objects = nil
	w.yields, w.savedSmall = wanted, time.Now()
	w.index.add(w.r, p, true)
	w.index.storeFilters(w.r, w.head)
	w.completeBatch(w.batch, nil)
	w.batch = nil
	return nil
}

// refusalsBeforeRequest is the number of refusals after which a small Save marks the head as wanted.
// Small Saves store no intent, so other nodes cannot detect that this node waits.
const refusalsBeforeRequest = 2

// requestHead counts a refusal. At the limit, it marks the head as wanted, so that a node that
// continually writes the head pauses once.
func (w *recipientWriter) requestHead(ctx context.Context, c *call) {
	w.refusals++
	if w.refusals != refusalsBeforeRequest {
		return
	}
	ops := client.NewPatch(headDocument)
	ops.AppendSet("/wanted", w.r.owner)
	// A crash after this write leaves the mark, which the next write of a Save removes.
	_ = c.Patch(ctx, w.r.db.catalog, headKey(w.recipient), headID, ops, &head{})
}

// gatherPause is the minimum time between two small Saves of a writer. During this time, the Saves of a
// busy recipient are queued, so that they are stored together at the cost of a large Save.
const gatherPause = 25 * time.Millisecond

// awaitSaves waits until gatherPause has passed since the last small Save, unless enough Saves are
// queued.
func (w *recipientWriter) awaitSaves(ctx context.Context) {
	if w.savedSmall.IsZero() {
		return
	}
	pause := gatherPause - time.Since(w.savedSmall)
	w.savedSmall = time.Time{}
	if pause > 0 && w.leader.Queued() < w.r.opts.TailEvents {
		client.Sleep(ctx, pause)
	}
}

// A payloadObject is an object in the content store with payloads of a batch.
type payloadObject struct {
	name   string
	drawer string
	ids    []domain.EventID
}

// putObjects stores the payloads of p, in one object for each cabinet. It reuses an object that an
// earlier attempt has stored for the same drawer with the same payloads.
func (w *recipientWriter) putObjects(ctx context.Context, p *savePlan) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	if w.objects == nil {
		w.objects = make(map[cabinetName]payloadObject)
	}
	for i, events := range p.events {
		part := &p.intent.Parts[i]
		o := payloadObject{drawer: part.Drawer}
		for _, e := range events {
			if e.Payload != nil {
				o.ids = append(o.ids, e.ID)
			}
		}
		before, stored := w.objects[part.Cabinet]
		if stored && before.hasPayloadsOf(&o) {
			continue
		}
		if stored {
			w.superseded = append(w.superseded, before.name)
			delete(w.objects, part.Cabinet)
		}
		if len(o.ids) == 0 {
			continue
		}
		o.name = payloadFolder(part.Drawer) + "/" + w.r.client.NewID()
		w.objects[part.Cabinet] = o
		g.Go(func() error { return w.r.content.Put(ctx, o.name, payloadsOf(events)) })
	}
	err := g.Wait()
	if err != nil { // Put may store the object and nevertheless return an error
		for _, o := range w.objects {
			w.superseded = append(w.superseded, o.name)
		}
		w.objects = nil
	}
	return err
}

// hasPayloadsOf reports whether o is in the same drawer and has the same payloads as want.
func (o *payloadObject) hasPayloadsOf(want *payloadObject) bool {
	if o.drawer != want.drawer || len(o.ids) != len(want.ids) {
		return false
	}
	for i := range o.ids {
		if o.ids[i] != want.ids[i] {
			return false
		}
	}
	return true
}

// dropObjects deletes the objects of a finished batch to which no saved event refers. If the outcome of a
// write of c is unknown, it deletes nothing, because saved events may refer to the objects.
func (w *recipientWriter) dropObjects(ctx context.Context, c *call) {
	for _, o := range w.objects {
		w.superseded = append(w.superseded, o.name)
	}
	if !c.InDoubt() {
		w.deleteObjects(ctx, w.superseded)
	}
	w.objects, w.superseded = nil, nil
}
