package cosmos

import (
	"github.com/messagehub/messagehub/domain"
)

// A savePlan contains an intent and its events.
type savePlan struct {
	intent *intent
	events [][]numberedEvent // events of each part of the intent

	batches func() []pageBatch // calls pageBatches once and caches the result, so that pages are encoded only once
	fronts  []bool             // whether the commit stores the first event of each part as the front of its cabinet; nil: no part
}

// planSave assigns the numbers and slots that follow the last ones in h to events. The events must be in
// order and new to the recipient.
func planSave(h *head, events []numberedEvent, capacity int, owner string, newID func() string) *savePlan {
	p := &savePlan{intent: &intent{
		ID: newID(), Owner: owner,
		First: h.Reserved + 1, Last: h.Reserved + domain.Sequence(len(events)),
	}}
	filling := make(map[cabinetName]int) // for each cabinet, index of the part that its next event belongs to
	var names namer
	for i := range events {
		e := events[i]
		e.sequence = p.intent.First + domain.Sequence(i)
		name := names.cabinetName(e.Cabinet())
		at, ok := filling[name]
		if !ok || p.intent.Parts[at].endSlot() == capacity {
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

// entriesReady reports for each part whether its catalog entry can be written before the counts. This is
// true for a new drawer, unless the Save first fills an older drawer of the same cabinet. The older
// drawer may need an entry, too. Both entries are then written together, because a Peek that reads only
// the later entry would use it as the first one of the cabinet.
func (p *savePlan) entriesReady() []bool {
	ready, older := make([]bool, len(p.intent.Parts)), make(map[cabinetName]bool)
	for i := range p.intent.Parts {
		part := &p.intent.Parts[i]
		older[part.Cabinet] = older[part.Cabinet] || !part.New
		ready[i] = !older[part.Cabinet]
	}
	return ready
}

// nextPart returns an empty part at the end of the cabinet: in its last drawer or, if the last drawer is
// full or closed, in a new one.
func (p *savePlan) nextPart(h *head, name cabinetName, capacity int, newID func() string) drawerPart {
	last := h.cabinetState(name)
	ordinal := last.Ordinal
	for _, earlier := range p.intent.Parts {
		if earlier.Cabinet == name {
			last.Drawer, ordinal = "", earlier.Ordinal
		}
	}
	if last.Drawer != "" && last.Fill < capacity {
		return drawerPart{Cabinet: name, Drawer: last.Drawer, Ordinal: ordinal, Slot: last.Fill}
	}
	return drawerPart{Cabinet: name, Drawer: newID(), Ordinal: ordinal + 1, New: true}
}
