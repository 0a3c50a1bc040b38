package cosmos

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Abandon implements repository.Admin. One batch writes the record and the gate, so a loss is recorded
// if and only if the gate moves past it.
func (r *Repository) Abandon(ctx context.Context, cabinet domain.CabinetKey, by repository.AdminAction) (repository.Loss, error) {
	var loss repository.Loss
	err := r.executeOrder(ctx, cabinet.Recipient, abandonOrder, by, func(c *call, writeID string) (*decision, error) {
		g, at, found, err := c.findLoss(ctx, cabinet)
		if err != nil {
			return nil, err
		}
		// A sender may repeat the lost events, so nodes must forget their ids. This write makes each node
		// read the stored ids again. A crash after this write has no other effect.
		ops := client.NewPatch(headDocument)
		ops.AppendSet("/abandoned", writeID)
		if err := c.Patch(ctx, r.db.catalog, headKey(cabinet.Recipient), headID, ops, &head{}); err != nil {
			if client.IsRefused(err) {
				err = client.ErrStale
			}
			return nil, err
		}
		loss = found
		return &decision{lost: newLossDoc(&found), writes: []batchWrite{
			replaceInBatch(g.ID, g.ETag, g.abandon(nameOf(cabinet), at, writeID)),
		}}, nil
	})
	if err != nil {
		return repository.Loss{}, err
	}
	r.writers.forgetHead(cabinet.Recipient)
	r.lostPages.remove(cabinet.Recipient)
	return loss, nil
}

// abandon returns a copy of g whose position in a cabinet is after the lost events. Last is cleared:
// earlier bundles end before the lost events, so they cannot be replayed.
func (g *gate) abandon(name cabinetName, at position, writeID string) *gate {
	c := g.confirm(writeID)
	c.Last = ""
	at.Unknown = g.At[name].Unknown
	if doubt := g.At[name].Doubt; doubt > at.Sequence {
		at.Doubt = doubt
	}
	c.At[name] = at
	return c
}

// findLoss returns the current gate of a cabinet, the loss at the front of the cabinet, and the position
// after the lost events.
func (c *call) findLoss(ctx context.Context, cabinet domain.CabinetKey) (*gate, position, repository.Loss, error) {
	name, loss := nameOf(cabinet), repository.Loss{Cabinet: cabinet}
	fail := func(err error) (*gate, position, repository.Loss, error) {
		return nil, position{}, repository.Loss{}, err
	}
	group, err := c.r.opts.Groups.GroupOf(cabinet.Origin)
	if err != nil {
		return fail(err)
	}
	gates, h, err := c.readGatesAndHead(ctx, cabinet.Recipient, []domain.Group{group})
	if err != nil {
		return fail(err)
	}
	g := gates[group]
	if c.r.db.ReadsMayBeStale() {
		if g, err = c.gateNow(ctx, cabinet.Recipient, group); err != nil {
			return fail(err)
		}
	}
	last := h.cabinetState(name)
	at := g.positionIn(name, last)
	switch {
	case last.Sequence <= at.Sequence:
		return fail(domain.Errorf(domain.NotFound, "nothing waits in cabinet %s", cabinetKey(cabinet)))
	case g.Open != "":
		return fail(domain.Errorf(domain.Conflict, "bundle %s is open in group %s; dequeue, release or skip it first", g.Open, group))
	}
	t, err := last.decodeTail(cabinet)
	if err != nil {
		return fail(domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cabinet), err))
	}
	from := max(at.Ordinal, h.cabinetFloor(name))
	extents, err := c.readExtents(ctx, cabinet, last, from, 0)
	if err != nil {
		return fail(err)
	}
	if len(extents) != last.Ordinal-from+1 {
		return fail(client.ErrNotYetVisible)
	}
	loss.First, loss.Last = at.Sequence+1, last.Sequence
	behind := position{Sequence: last.Sequence, Total: last.Total}
	for _, e := range extents {
		s := slotRange{Drawer: e.drawer, Ordinal: e.ordinal, To: e.limit}
		if e.ordinal == at.Ordinal {
			s.From = at.Slot
		}
		next, err := c.readLoss(ctx, cabinet, s, t, &loss)
		if err != nil {
			return fail(err)
		}
		behind.Ordinal, behind.Slot = e.ordinal, max(s.From, s.To)
		if next != nil {
			loss.Last = next.Sequence - 1
			behind = position{
				Ordinal: e.ordinal, Slot: s.To - next.remaining, Sequence: loss.Last,
				Total: at.Total + loss.Events, NextSaved: millisOf(next.Saved),
			}
			break
		}
	}
	if loss.Events == 0 {
		return fail(domain.Errorf(domain.Conflict, "the first event that waits in cabinet %s can be read", cabinetKey(cabinet)))
	}
	if err := c.confirmFloor(ctx, h, name); err != nil {
		return fail(err)
	}
	return g, behind, loss, nil
}

// A readableEvent is the first readable event after lost slots. remaining is the number of slots from this
// event to the end of its drawer.
type readableEvent struct {
	repository.StoredEvent
	remaining int
}

// readLoss adds the lost slots at the front of s to loss, and returns the event after them, or nil if
// all slots of s are lost.
func (c *call) readLoss(ctx context.Context, cabinet domain.CabinetKey, s slotRange, t *tail, loss *repository.Loss) (*readableEvent, error) {
	read := c.readDrawer(cabinet, s, t)
	for !read.isDone() {
		at := read.at
		events, err := read.readNext(ctx)
		if err == nil {
			return &readableEvent{events[0].StoredEvent, s.To - at}, nil
		}
		lost, err := read.skipLost(ctx, err)
		if err != nil {
			return nil, err
		}
		loss.Events += int64(lost.To - lost.From)
		loss.Slots = append(loss.Slots, repository.LostSlots{Drawer: lost.Drawer, Ordinal: lost.Ordinal, From: lost.From, To: lost.To})
	}
	return nil, nil //nolint:nilnil // there is no such event
}

// A lossDoc is a repository.Loss as stored in a record.
type lossDoc struct {
	Cabinet cabinetName     `json:"cabinet"`
	Events  int64           `json:"events"`
	First   domain.Sequence `json:"first"`
	Last    domain.Sequence `json:"last"`
	Slots   []lostSlots     `json:"slots"`
}

type lostSlots struct {
	Drawer  string `json:"drawer"`
	Ordinal int    `json:"ordinal"`
	From    int    `json:"from"`
	To      int    `json:"to"` // exclusive
}

func newLossDoc(l *repository.Loss) *lossDoc {
	d := &lossDoc{Cabinet: nameOf(l.Cabinet), Events: l.Events, First: l.First, Last: l.Last}
	for _, s := range l.Slots {
		d.Slots = append(d.Slots, lostSlots(s))
	}
	return d
}

func (d *lossDoc) toLoss(recipient domain.ActorID) (*repository.Loss, error) {
	cabinet, err := cabinetOf(recipient, d.Cabinet)
	if err != nil {
		return nil, err
	}
	l := &repository.Loss{Cabinet: cabinet, Events: d.Events, First: d.First, Last: d.Last}
	for _, s := range d.Slots {
		l.Slots = append(l.Slots, repository.LostSlots(s))
	}
	return l, nil
}
