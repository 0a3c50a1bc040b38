package cosmos

import (
	"maps"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A head determines which events a recipient has received. Each recipient has one head, in the catalog
// container. Every write of a head is conditional. A comment at each write describes the effects of a
// crash: reserve and commit are in save.go, claim and clear in save_rollback.go, the retention in
// retention_sweep.go.
//
// The methods below are its transitions: each returns the next head and does not change its receiver.
// The writer sets the WriteID of the next head (see writeHead).
type head struct {
	ID           string                       `json:"id"` // always "head"
	PartitionKey string                       `json:"partitionKey"`
	WriteID      headWriteID                  `json:"operation"` // id of the last write
	Reserved     domain.Sequence              `json:"reserved"`  // the highest number that was ever assigned
	Watermark    domain.Sequence              `json:"watermark"` // the highest number that is visible
	Intent       *intent                      `json:"intent,omitempty"`
	Wanted       string                       `json:"wanted,omitempty"` // id of a process that waits for the end of the intent
	Undone       int                          `json:"undone,omitempty"` // number of rollbacks since the last commit for which no other process waited
	Cabinets     map[cabinetName]cabinetState `json:"cabinets"`
	Retention    map[cabinetName]retained     `json:"retention,omitempty"`
	Fence        string                       `json:"fence,omitempty"` // id of the last write of Retention

	// RemovedOrdinal and RemovedTotal are the highest ordinal and the highest total of the removed
	// cabinets. A new cabinet continues after these numbers.
	RemovedOrdinal int   `json:"removedOrdinal,omitempty"`
	RemovedTotal   int64 `json:"removedTotal,omitempty"`

	// Abandoned is the id of the last order to abandon lost events. If it changes, nodes must discard the
	// event ids that they have in memory.
	Abandoned string `json:"abandoned,omitempty"`
	client.Document

	etag azcore.ETag
}

const headID = "head"

// A cabinetState records how far committed Saves have filled a cabinet.
type cabinetState struct {
	Drawer   string                `json:"drawer,omitempty"` // id of the drawer being filled; "" if the next Save begins a new drawer
	Fill     int                   `json:"fill"`             // number of events in Drawer
	Paged    int                   `json:"paged,omitempty"`  // if Tail is set: number of events in pages; otherwise all events are in pages
	Tail     packed                `json:"tail,omitempty"`   // events that are not in pages; see decodeTail
	Saves    packed                `json:"saves,omitempty"`  // trace spans of the Saves of the events in Tail; see save_traces.go
	Ordinal  int                   `json:"ordinal"`          // ordinal of Drawer or, if Drawer is "", of the last drawer
	Sequence domain.Sequence       `json:"sequence"`         // number of the last event
	Total    int64                 `json:"total"`            // number of events that were ever saved
	Marks    []mark                `json:"marks,omitempty"`  // times at which events were saved, in order
	Front    front                 `json:"front,omitzero"`   // event that was saved while no other event waited; see front.go
	Unknown  client.UnknownMembers `json:",embed"`

	// BaseOrdinal and BaseTotal are RemovedOrdinal and RemovedTotal of the head when the cabinet was new.
	// The drawers of the cabinet have higher ordinals, and Total began at BaseTotal.
	BaseOrdinal int   `json:"baseOrdinal,omitempty"`
	BaseTotal   int64 `json:"baseTotal,omitempty"`

	// Raise is true if the head has lost writes and must be raised to the numbers that are stored; see
	// raiseHead.
	Raise bool `json:"raise,omitempty"`
}

// An intent is the plan of a Save in flight. It lists all writes of the Save, so that any writer can roll
// back the Save.
type intent struct {
	ID      string                `json:"id"`
	Owner   string                `json:"owner"` // id of the saving process
	First   domain.Sequence       `json:"first"`
	Last    domain.Sequence       `json:"last"`
	Aborted bool                  `json:"aborted,omitempty"` // claimed for rollback: the intent can no longer be committed
	Saved   millis                `json:"saved,omitempty"`   // the time of the Save
	Parts   []drawerPart          `json:"parts"`
	Unknown client.UnknownMembers `json:",embed"`
}

// A drawerPart is the range of slots in one drawer that a Save fills.
type drawerPart struct {
	Cabinet cabinetName           `json:"cabinet"`
	Drawer  string                `json:"drawer"`
	Ordinal int                   `json:"ordinal"`
	Slot    int                   `json:"slot"` // first slot of the range
	Count   int                   `json:"count"`
	New     bool                  `json:"new,omitempty"` // the Save creates the drawer
	First   domain.Sequence       `json:"first"`
	Last    domain.Sequence       `json:"last"`
	Unknown client.UnknownMembers `json:",embed"`
}

func (p *drawerPart) endSlot() int { return p.Slot + p.Count }

// clone returns a copy of h that can be changed without changing h. The copy shares the intent, which is
// immutable.
func (h *head) clone() *head {
	c := *h
	c.Cabinets = maps.Clone(h.Cabinets)
	if c.Cabinets == nil {
		c.Cabinets = make(map[cabinetName]cabinetState)
	}
	return &c
}

// reservePlan returns h with the numbers and slots of p reserved.
func (h *head) reservePlan(p *savePlan) *head {
	c := h.clone()
	c.Reserved, c.Intent = p.intent.Last, p.intent
	return c
}

// commitIntent returns h with the events of its intent visible. If isFront is true for a part, the first
// event of the part becomes the front of the cabinet. If isFront is nil, no event becomes a front.
func (h *head) commitIntent(isFront []bool) *head {
	c := h.clone()
	c.Watermark, c.Intent = h.Intent.Last, nil
	if c.Wanted == "" { // while another process waits, the lease is not reset; see lease
		c.Undone = 0
	}
	c.Wanted = ""
	for i := range h.Intent.Parts {
		p := &h.Intent.Parts[i]
		before := c.cabinetState(p.Cabinet)
		if isFront != nil && isFront[i] {
			before.Front = front{before.Total + 1, int64(p.First)}
		}
		c.Cabinets[p.Cabinet] = cabinetState{
			Drawer: p.Drawer, Fill: p.endSlot(), Ordinal: p.Ordinal, Sequence: p.Last,
			Total:   before.Total + int64(p.Count),
			Marks:   before.withMark(before.Total+1, h.Intent.Saved, marksPerCabinet(len(c.Cabinets))),
			Front:   before.Front,
			Unknown: before.Unknown,

			BaseOrdinal: before.BaseOrdinal, BaseTotal: before.BaseTotal, Raise: before.Raise,
		}
	}
	return c
}

// appendTails returns h with the events of a small Save added to its tails. The events are then visible. h
// must have no intent.
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
		if t != nil { // a cabinet with a tail continues in the same drawer
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

// withFlushed returns h with the events of the tail t before the slot until moved to a page.
func (h *head) withFlushed(name cabinetName, t *tail, until int) *head {
	c := h.clone()
	last := c.Cabinets[name]
	last.Marks = last.withMark(last.Total-int64(len(t.events))+1, millisOf(t.events[0].Saved), marksPerCabinet(len(c.Cabinets)))
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

// markWanted returns h with a mark that a process waits for the head. The owner of the intent must then
// not reserve again with its commit. Without the mark, a busy node, whose head always has an intent, would
// prevent all Saves of other nodes.
func (h *head) markWanted(process string) *head {
	c := h.clone()
	c.Wanted = process
	return c
}

// claimIntent returns h with its intent claimed for rollback: the intent can no longer be committed.
func (h *head) claimIntent() *head {
	c := h.clone()
	aborted := *h.Intent
	aborted.Aborted = true
	c.Intent = &aborted
	return c
}

// clearIntent returns h without its intent, after the drawers of the intent were sealed. The cabinets of
// the intent continue in new drawers.
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

// setRetention returns h with the retention kept, identified by fence, and without the cabinets in
// removed. It drops the tail of each cabinet in closed, because all events of the tail are acknowledged.
// The next Save to the cabinet begins a new drawer.
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

// intentStands reports whether the intent of h is still in a later head, and is not aborted.
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

// setWriteID sets the id of the write that will store h, and the format that h needs.
func (h *head) setWriteID(id string) {
	h.WriteID, h.StoredFormat = headWriteID{ID: id}, 0
	switch {
	case h.RemovedOrdinal > 0:
		h.WriteID.Format, h.StoredFormat = removalFormat, removalFormat
	case h.hasTail():
		h.WriteID.Format, h.StoredFormat = tailFormat, tailFormat
	}
}
