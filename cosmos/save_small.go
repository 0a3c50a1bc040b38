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

// A Save is small if its events fit into the tails of their cabinets. A small Save is one conditional
// replacement of the head, without an intent, which makes its events visible. If a tail has not enough
// room, the tail is first flushed to a page, and the same replacement of the head removes it. Every other
// Save is large; the tails of its cabinets are flushed before its intent is reserved.

// The limits for all tails of a head together. The head has up to about 8 KB, because the price of a write
// grows with every KB.
const (
	headBytes   = 8 << 10
	minAllTails = 3 << 10
	maxAllTails = 4 << 10
)

// makeRoom flushes the tails that have no room for the fresh events. It returns the plan of the events and
// base, the head on which the plan is based: w.head without the flushed tails. next is the head with the
// events of a small Save, or nil if the Save is large.
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
// first, full is the cabinet of that tail.
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

// isSmall reports whether the events of each cabinet of p fit into one drawer and one tail, and all events
// of p into a head.
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

// tailEventBytes is the approximate size of an event in the tail of a head, without a payload.
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

// storedEvents returns the events of each part of p as they are stored in a tail. Events with stored
// payloads have the names of the objects.
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

// saveSmall stores the payloads of p, and replaces the head by next, which has the events of p in its
// tails.
func (w *recipientWriter) saveSmall(ctx context.Context, c *call, base *head, p *savePlan) error {
	// A crash after these writes leaves objects that no document refers to. The sweep deletes them with
	// their drawer. If their drawer is never created, the objects are never deleted.
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
	// A crash after this write leaves visible events, which count as duplicates when they are
	// sent again.
	if err := w.writeHead(ctx, c, next); err != nil {
		if errors.Is(err, client.ErrStale) {
			// The head does not have this write, but another node has written the head. A retry that
			// finds an event saved counts it as a duplicate: this write may have been based on a stale
			// head, which did not show that the event had been received before.
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

// refusalsBeforeRequest is the number of refusals after which a small Save marks the head as wanted. Small
// Saves leave no intent in the head, so other nodes cannot see that this node waits.
const refusalsBeforeRequest = 2

// requestHead counts a refusal. At the limit it marks the head as wanted, so that another node that writes
// the head continually pauses once.
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
// busy recipient are queued, so that they are stored together and cost as much as large ones.
const gatherPause = 25 * time.Millisecond

// awaitSaves waits until the pause after a small Save has passed, unless enough Saves are queued.
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

// A payloadObject is a stored object with the payloads of events of a batch.
type payloadObject struct {
	name   string
	drawer string
	ids    []domain.EventID
}

// putObjects stores the payloads of p, one object for each cabinet. It reuses an object of an earlier
// attempt for the same drawer with the same payloads.
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
	if err != nil { // a Put may have stored its object before it failed
		for _, o := range w.objects {
			w.superseded = append(w.superseded, o.name)
		}
		w.objects = nil
	}
	return err
}

// hasPayloadsOf reports whether o has the same payloads as want.
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

// dropObjects deletes the objects to which no saved event of a finished batch refers. If a write of c may
// have been applied without a reply, it deletes no object: saved events may refer to it.
func (w *recipientWriter) dropObjects(ctx context.Context, c *call) {
	for _, o := range w.objects {
		w.superseded = append(w.superseded, o.name)
	}
	if !c.InDoubt() {
		w.deleteObjects(ctx, w.superseded)
	}
	w.objects, w.superseded = nil, nil
}
