package cosmos

import (
	"maps"

	"github.com/messagehub/messagehub/domain"
)

// A plan is an intent together with the events that it is about.
type plan struct {
	intent *intent
	events [][]numbered // of each part

	batches func() []pageBatch // its pages, which are cut and encoded once
}

// planSave gives events, which are in order and new to the recipient, their
// sequence numbers and slots behind all that h says is there.
func planSave(h *head, events []numbered, capacity int, owner string, newID func() string) *plan {
	p := &plan{intent: &intent{
		ID: newID(), Owner: owner,
		First: h.Reserved + 1, Last: h.Reserved + domain.Sequence(len(events)),
	}}
	filling := make(map[cabinetName]int) // the part that takes the cabinet's next event
	var names namer
	for i := range events {
		e := events[i]
		e.sequence = p.intent.First + domain.Sequence(i)
		name := names.of(e.Cabinet())
		at, ok := filling[name]
		if !ok || p.intent.Parts[at].end() == capacity {
			at = len(p.intent.Parts)
			filling[name] = at
			p.intent.Parts = append(p.intent.Parts, p.nextPart(h, name, capacity, newID))
			p.events = append(p.events, nil)
		}
		part := &p.intent.Parts[at]
		if part.Count == 0 {
			part.First = e.sequence
		}
		part.Last = e.sequence
		part.Count++
		p.events[at] = append(p.events[at], e)
	}
	return p
}

// begun tells of which parts the entries in the catalog need not wait for a count:
// in a drawer that is new nothing waits yet. Where the cabinet fills an older drawer
// first, that one's entry may be due as well. Then they are written together, for a Peek
// that saw the later one alone would take it for the smallest.
func (p *plan) begun() []bool {
	begun, older := make([]bool, len(p.intent.Parts)), make(map[cabinetName]bool)
	for i := range p.intent.Parts {
		part := &p.intent.Parts[i]
		older[part.Cabinet] = older[part.Cabinet] || !part.New
		begun[i] = !older[part.Cabinet]
	}
	return begun
}

// nextPart begins where the cabinet ends: in its last drawer if there is room,
// else in a new one.
func (p *plan) nextPart(h *head, name cabinetName, capacity int, newID func() string) part {
	last := h.Cabinets[name]
	ordinal := last.Ordinal
	for _, earlier := range p.intent.Parts {
		if earlier.Cabinet == name {
			last.Drawer, ordinal = "", earlier.Ordinal
		}
	}
	if last.Drawer != "" && last.Fill < capacity {
		return part{Cabinet: name, Drawer: last.Drawer, Ordinal: ordinal, Slot: last.Fill}
	}
	return part{Cabinet: name, Drawer: newID(), Ordinal: ordinal + 1, New: true}
}

// clone returns a copy of h that can be changed without changing h. Intents are
// never changed, so the copy may share h's.
func (h *head) clone() *head {
	c := *h
	c.Cabinets = maps.Clone(h.Cabinets)
	if c.Cabinets == nil {
		c.Cabinets = make(map[cabinetName]received)
	}
	return &c
}

// withIntent returns h with the numbers of p reserved.
func (h *head) withIntent(p *plan) *head {
	c := h.clone()
	c.Reserved, c.Intent = p.intent.Last, p.intent
	return c
}

// committed returns h with its intent carried out.
func (h *head) committed() *head {
	c := h.clone()
	c.Watermark, c.Intent = h.Intent.Last, nil
	if c.Wanted == "" { // else who is waiting may be who was undone, and needs the time
		c.Undone = 0
	}
	c.Wanted = ""
	for i := range h.Intent.Parts {
		p := &h.Intent.Parts[i]
		before := c.Cabinets[p.Cabinet]
		c.Cabinets[p.Cabinet] = received{
			Drawer: p.Drawer, Fill: p.end(), Ordinal: p.Ordinal, Sequence: p.Last,
			Total:   before.Total + int64(p.Count),
			Marks:   before.marked(h.Intent.Saved, marksOf(len(c.Cabinets))),
			Unknown: before.Unknown,
		}
	}
	return c
}

// claimed returns h with its intent doomed.
func (h *head) claimed() *head {
	c := h.clone()
	doomed := *h.Intent
	doomed.Aborted = true
	c.Intent = &doomed
	return c
}

// cleared returns h without its intent, whose drawers are sealed: the cabinets
// concerned go on in new drawers.
func (h *head) cleared() *head {
	c := h.clone()
	c.Intent, c.Wanted = nil, ""
	c.Undone++
	for i := range h.Intent.Parts {
		p := &h.Intent.Parts[i]
		last := c.Cabinets[p.Cabinet]
		last.Drawer, last.Fill, last.Ordinal = "", 0, max(last.Ordinal, p.Ordinal)
		c.Cabinets[p.Cabinet] = last
	}
	return c
}
