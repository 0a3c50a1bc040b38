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

// A Save is small if its events fit into the tails of their cabinets. It is one conditional replacement
// of the head, without an intent, which makes its events visible. A tail without enough room is flushed
// before, and the same replacement notes that. Every other Save is large; the tails of its cabinets are
// flushed before its intent is reserved.

// The limits for all tails of a head together. They fit into a head of 8 KB, because the price of a
// write grows with every KB.
const (
	headBytes   = 8 << 10
	minAllTails = 3 << 10
	maxAllTails = 4 << 10
)

// makeRoom returns the plan of fresh events, and the head on which it is based: w.head, with those
// tails flushed that have no room for the events. next is the head with the events of a small Save, nil
// if the Save is large.
func (w *recipientWriter) makeRoom(ctx context.Context, c *call, fresh []numbered) (base *head, p *savePlan, next *head, err error) {
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

// fitTails returns h with the events of p in its tails, nil if p is large. full is the cabinet whose
// tail has to be flushed first, if there is one.
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

// isSmall reports whether the events of each cabinet of p fit into one drawer and a tail, and all of
// them into a head.
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

// longestTail returns the cabinet of h with the most events in its tail, "" if all tails are empty.
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

// storedEvents returns the events of each part of p as they are stored in a tail. Those whose payloads
// were stored have the names of the objects.
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
	// their drawer; objects of a drawer that was never created stay.
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
			// If the outcome is unknown, another node has written the head since. An event that is then
			// found saved counts as a duplicate: this write may have been based on a stale head, which
			// did not show that the event had been received.
			for _, save := range w.batch {
				save.endAttempt()
			}
			w.askForHead(ctx, c)
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

// refusalsBeforeAsking is the number of refusals after which a small Save asks other nodes to wait.
// Small Saves leave no intent in the head, so nothing else shows that another node writes it.
const refusalsBeforeAsking = 2

// askForHead marks the head as wanted, so that another node that writes it all the time waits once.
func (w *recipientWriter) askForHead(ctx context.Context, c *call) {
	w.refusals++
	if w.refusals != refusalsBeforeAsking {
		return
	}
	ops := client.NewPatch(headDocument)
	ops.AppendSet("/wanted", w.r.owner)
	// A crash after this write leaves the mark, which the next write of a Save removes.
	_ = c.Patch(ctx, w.r.db.catalog, headKey(w.recipient), headID, ops, &head{})
}

// gatherPause is the minimum time between two small Saves of a writer: meanwhile, the Saves of a busy
// recipient are queued, so that together they cost as much as large ones.
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

// A payloadObject holds the payloads of some events of a batch.
type payloadObject struct {
	name   string
	drawer string
	ids    []domain.EventID
}

// putObjects stores the payloads of p, one object for each cabinet. It reuses an object of an earlier
// attempt that is in the same drawer and holds the same payloads.
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
	if err != nil { // it is unknown which of them exist
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

// dropObjects deletes the payloads to which no event of a finished batch refers. It keeps them if a
// write of c may have been applied without a reply: the events that refer to them may be saved.
func (w *recipientWriter) dropObjects(ctx context.Context, c *call) {
	for _, o := range w.objects {
		w.superseded = append(w.superseded, o.name)
	}
	if !c.InDoubt() {
		w.deleteObjects(ctx, w.superseded)
	}
	w.objects, w.superseded = nil, nil
}
