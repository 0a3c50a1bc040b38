package cosmos

import (
	"maps"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A head decides which events a recipient has received. There is one for each recipient, in the catalog
// container; every write of it is conditional. The effects of a crash are described where the writer
// writes each state: reserve and commit in save.go, claim and clear in save_rollback.go, the retention
// in retention_sweep.go.
//
// Its transitions are the methods below: each returns the successor and does not change its receiver.
// The writer gives each successor its WriteID (see writeHead).
type head struct {
	ID           string                   `json:"id"` // always "head"
	PartitionKey string                   `json:"partitionKey"`
	WriteID      headWriteID              `json:"operation"` // id of the last write
	Reserved     domain.Sequence          `json:"reserved"`  // the highest number that was ever assigned
	Watermark    domain.Sequence          `json:"watermark"` // the highest number that is visible
	Intent       *intent                  `json:"intent,omitempty"`
	Wanted       string                   `json:"wanted,omitempty"` // the process that waits for the end of the intent
	Undone       int                      `json:"undone,omitempty"` // number of intents that were rolled back since the last commit without a waiting writer
	Cabinets     map[cabinetName]received `json:"cabinets"`
	Retention    map[cabinetName]retained `json:"retention,omitempty"`
	Fence        string                   `json:"fence,omitempty"` // id of the last write of Retention

	// The highest ordinal and the highest total of the cabinets that were removed. A new cabinet
	// continues after them.
	RemovedOrdinal int   `json:"removedOrdinal,omitempty"`
	RemovedTotal   int64 `json:"removedTotal,omitempty"`

	// Abandoned is the id of the last order that gave up lost events. If it changes, the ids of events
	// that nodes have in memory are no longer valid.
	Abandoned string `json:"abandoned,omitempty"`
	client.Document

	etag azcore.ETag
}

const headID = "head"

// received is the state of a cabinet: how far Saves that are committed have filled it.
type received struct {
	Drawer   string                `json:"drawer,omitempty"` // the last one; "" after a rollback or a closing: the next Save begins a new one
	Fill     int                   `json:"fill"`             // number of events in Drawer
	Paged    int                   `json:"paged,omitempty"`  // number of those in pages, if there is a Tail; otherwise all are
	Tail     packed                `json:"tail,omitempty"`   // the events that are not in pages; see decodeTail
	Saves    packed                `json:"saves,omitempty"`  // the spans that have saved the events in Tail; see save_traces.go
	Ordinal  int                   `json:"ordinal"`          // the highest one in use; that of Drawer, if Drawer is set
	Sequence domain.Sequence       `json:"sequence"`         // sequence of the last event
	Total    int64                 `json:"total"`            // number of events that were ever saved
	Marks    []mark                `json:"marks,omitempty"`  // times at which events were saved, in order
	Front    front                 `json:"front,omitzero"`   // an event that was the first to wait when it was saved
	Unknown  client.UnknownMembers `json:",embed"`

	// RemovedOrdinal and RemovedTotal of the head when the cabinet was new. Its drawers have higher
	// ordinals, and Total counts from here.
	BaseOrdinal int   `json:"baseOrdinal,omitempty"`
	BaseTotal   int64 `json:"baseTotal,omitempty"`

	// The head has lost writes, and its numbers must be raised to what is stored; see raiseHead.
	Raise bool `json:"raise,omitempty"`
}

// An intent is a Save in flight. It lists everything that the Save is going to write, so that any
// writer can roll it back.
type intent struct {
	ID      string                `json:"id"`
	Owner   string                `json:"owner"` // the process that saves
	First   domain.Sequence       `json:"first"`
	Last    domain.Sequence       `json:"last"`
	Aborted bool                  `json:"aborted,omitempty"` // claimed for rollback: it can no longer be committed
	Saved   millis                `json:"saved,omitempty"`   // the time of the Save
	Parts   []drawerPart          `json:"parts"`
	Unknown client.UnknownMembers `json:",embed"`
}

// A drawerPart is a range of slots of one drawer that a Save fills.
type drawerPart struct {
	Cabinet cabinetName           `json:"cabinet"`
	Drawer  string                `json:"drawer"`
	Ordinal int                   `json:"ordinal"`
	Slot    int                   `json:"slot"` // the first one
	Count   int                   `json:"count"`
	New     bool                  `json:"new,omitempty"` // the drawer must be created
	First   domain.Sequence       `json:"first"`
	Last    domain.Sequence       `json:"last"`
	Unknown client.UnknownMembers `json:",embed"`
}

func (p *drawerPart) endSlot() int { return p.Slot + p.Count }

// clone returns a copy of h that can be changed without changing h. The copy shares the intent, which
// is never changed.
func (h *head) clone() *head {
	c := *h
	c.Cabinets = maps.Clone(h.Cabinets)
	if c.Cabinets == nil {
		c.Cabinets = make(map[cabinetName]received)
	}
	return &c
}

// reservePlan returns h with the numbers and slots of p reserved.
func (h *head) reservePlan(p *savePlan) *head {
	c := h.clone()
	c.Reserved, c.Intent = p.intent.Last, p.intent
	return c
}

// commitIntent returns h with the events of its intent visible. For each part with isFront true, the
// first event becomes the front of the cabinet. A nil isFront means none.
func (h *head) commitIntent(isFront []bool) *head {
	c := h.clone()
	c.Watermark, c.Intent = h.Intent.Last, nil
	if c.Wanted == "" { // otherwise the waiting writer may be one that was rolled back, which needs the longer lease
		c.Undone = 0
	}
	c.Wanted = ""
	for i := range h.Intent.Parts {
		p := &h.Intent.Parts[i]
		before := c.cabinetState(p.Cabinet)
		if isFront != nil && isFront[i] {
			before.Front = front{before.Total + 1, int64(p.First)}
		}
		c.Cabinets[p.Cabinet] = received{
			Drawer: p.Drawer, Fill: p.endSlot(), Ordinal: p.Ordinal, Sequence: p.Last,
			Total:   before.Total + int64(p.Count),
			Marks:   before.withMark(before.Total+1, h.Intent.Saved, marksOf(len(c.Cabinets))),
			Front:   before.Front,
			Unknown: before.Unknown,

			BaseOrdinal: before.BaseOrdinal, BaseTotal: before.BaseTotal, Raise: before.Raise,
		}
	}
	return c
}

// appendTails returns h with the events of a small Save in its tails, and visible. h must have no
// intent.
func (h *head) appendTails(recipient domain.ActorID, p *savePlan, events [][]storedEvent) (*head, error) {
	c := h.clone()
	c.Reserved, c.Watermark = p.intent.Last, p.intent.Last
	if c.Wanted == "" {
		c.Undone = 0
	}
	c.Wanted = ""
	for i := range p.intent.Parts {
		part := &p.intent.Parts[i]
		last := c.cabinetState(part.Cabinet)
		cabinet, err := cabinetOf(recipient, part.Cabinet)
		if err != nil {
			return nil, err
		}
		t, err := last.decodeTail(cabinet)
		if err != nil {
			return nil, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cabinet), err)
		}
		all, saves := events[i], savesOf(p.events[i], part.Slot)
		if t != nil { // then the drawer is the same
			all = append(t.events, all...)
			for _, s := range saves {
				t.saves = appendRun(t.saves, s)
			}
			saves = t.saves
		} else {
			last.Paged = part.Slot
		}
		last.Drawer, last.Fill, last.Ordinal = part.Drawer, part.endSlot(), part.Ordinal
		last.Sequence, last.Total = part.Last, last.Total+int64(part.Count)
		last.Tail = last.encodeTail(all)
		last.Saves = last.encodeTailSaves(saves)
		c.Cabinets[part.Cabinet] = last
	}
	return c, nil
}

// withFlushed returns h with the events of the tail t before a slot in pages.
func (h *head) withFlushed(name cabinetName, t *tail, until int) *head {
	c := h.clone()
	last := c.Cabinets[name]
	last.Marks = last.withMark(last.Total-int64(len(t.events))+1, millisOf(t.events[0].Saved), marksOf(len(c.Cabinets)))
	rest := t.slotEvents(until, last.Fill)
	last.Paged = until
	last.Tail = last.encodeTail(rest)
	last.Saves = last.encodeTailSaves(clipSaves(t.saves, until, last.Fill))
	if len(rest) == 0 {
		last.Paged = 0
	}
	c.Cabinets[name] = last
	return c
}

// markWanted returns h with a note for the owner of its intent: the process waits for the head, so the
// owner must not reserve again with its commit. Without the note, a busy node, whose head always has an
// intent, would keep all others out.
func (h *head) markWanted(process string) *head {
	c := h.clone()
	c.Wanted = process
	return c
}

// claimIntent returns h with its intent claimed for rollback: it can no longer be committed.
func (h *head) claimIntent() *head {
	c := h.clone()
	aborted := *h.Intent
	aborted.Aborted = true
	c.Intent = &aborted
	return c
}

// clearIntent returns h without its intent, whose drawers are sealed. The cabinets of the intent
// continue in new drawers.
func (h *head) clearIntent() *head {
	c := h.clone()
	c.Intent, c.Wanted = nil, ""
	c.Undone++
	for i := range h.Intent.Parts {
		p := &h.Intent.Parts[i]
		last := c.cabinetState(p.Cabinet)
		last.Drawer, last.Fill, last.Ordinal = "", 0, max(last.Ordinal, p.Ordinal) // the cabinet has no tail
		c.Cabinets[p.Cabinet] = last
	}
	return c
}

// setRetention returns h with another retention, identified by its fence, and without the cabinets in
// removed. The next Save to a cabinet in closed begins a new drawer; the tail of that cabinet, whose
// events are all acknowledged, is dropped.
func (h *head) setRetention(kept map[cabinetName]retained, fence string, closed, removed []cabinetName) *head {
	c := h.clone()
	c.Retention, c.Fence = kept, fence
	for _, name := range closed {
		last := c.Cabinets[name]
		last.Drawer, last.Fill, last.Paged, last.Tail, last.Saves = "", 0, 0, nil, nil
		c.Cabinets[name] = last
	}
	for _, name := range removed {
		last := c.Cabinets[name]
		c.RemovedOrdinal, c.RemovedTotal = max(c.RemovedOrdinal, last.Ordinal), max(c.RemovedTotal, last.Total)
		delete(c.Cabinets, name)
	}
	c.setWriteID(c.WriteID.ID)
	return c
}

// intentStands reports whether a later head still has the intent of h, not aborted.
func (h *head) intentStands(later *head) bool {
	return h.Intent != nil && later.Intent != nil && h.Intent.ID == later.Intent.ID &&
		!h.Intent.Aborted && !later.Intent.Aborted
}

// isFilling reports whether h has an intent that fills a cabinet.
func (h *head) isFilling(name cabinetName) bool {
	if h.Intent == nil {
		return false
	}
	for i := range h.Intent.Parts {
		if h.Intent.Parts[i].Cabinet == name {
			return true
		}
	}
	return false
}

// setWriteID sets the id of the write that is going to store h, and the format that h then has.
func (h *head) setWriteID(id string) {
	h.WriteID, h.StoredFormat = headWriteID{ID: id}, 0
	switch {
	case h.RemovedOrdinal > 0:
		h.WriteID.Format, h.StoredFormat = removalFormat, removalFormat
	case h.hasTail():
		h.WriteID.Format, h.StoredFormat = tailFormat, tailFormat
	}
}
