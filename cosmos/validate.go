package cosmos

import (
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// Numbers in documents determine how much a node reads and how much memory it uses. A number that no hub
// could have written counts as damage, like invalid JSON, and must not cause unlimited work.

// maxSlots is above the number of slots of any drawer, because the capacity is at most a million.
const maxSlots = 1 << 20

// maxOrdinal is above any ordinal, because a cabinet with this number of drawers would have more than a
// hundred billion events.
const maxOrdinal = 1 << 24

// isName reports whether text may be the id of a drawer. Without this check, Cosmos DB would refuse a
// request with an invalid id as a bad request, so the damage would not be detected.
func isName(text string) bool {
	return len(text) <= 100 && strings.IndexFunc(text, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

func areSlots(from, to int) bool { return 0 <= from && from <= to && to <= maxSlots }

func areOrdinals(from, to int) bool { return 0 <= from && from <= to && to <= maxOrdinal }

func (h *head) Validate() error {
	for name, last := range h.Cabinets {
		if !areSlots(0, last.Fill) || !areOrdinals(last.BaseOrdinal, last.Ordinal) || !isName(last.Drawer) {
			return fmt.Errorf("cabinet %q has %d events in drawer %d", name, last.Fill, last.Ordinal)
		}
	}
	if !areOrdinals(0, h.RemovedOrdinal) {
		return fmt.Errorf("it has removed cabinets up to drawer %d", h.RemovedOrdinal)
	}
	if h.Undone < 0 {
		return fmt.Errorf("%d of its intents were rolled back", h.Undone)
	}
	for name, t := range h.Retention {
		if !isName(t.Closed) {
			return fmt.Errorf("cabinet %q has closed drawer %q", name, t.Closed)
		}
	}
	if h.Intent != nil {
		for i := range h.Intent.Parts {
			if p := &h.Intent.Parts[i]; p.Count < 0 || !isName(p.Drawer) || !areSlots(p.Slot, p.endSlot()) ||
				p.Ordinal < 0 || p.Ordinal > h.cabinetState(p.Cabinet).Ordinal+len(h.Intent.Parts) { // each new drawer has the next ordinal
				return fmt.Errorf("its intent is to fill %d slots from %d on, of drawer %d", p.Count, p.Slot, p.Ordinal)
			}
		}
	}
	return h.validateTails()
}

func (d *drawer) Validate() error {
	if !areSlots(0, d.Count) || !areOrdinals(0, d.Ordinal) {
		return fmt.Errorf("drawer %s, number %d, has %d events", d.ID, d.Ordinal, d.Count)
	}
	return nil
}

func (d *bundleDoc) Validate() error {
	if d.Count < 0 || domain.Weight(d.Count) > domain.MaxBundleWeight { // each event weighs at least 1
		return fmt.Errorf("bundle %s has %d events", d.ID, d.Count)
	}
	if !isName(d.WriteID) { // the write id is inserted into a condition
		return fmt.Errorf("bundle %s has the write id %q", d.ID, d.WriteID)
	}
	if len(d.Ranges) == 0 {
		return fmt.Errorf("bundle %s has no slots", d.ID)
	}
	if len(d.Ranges) > drawersPerBundle {
		return fmt.Errorf("bundle %s has slots of %d drawers", d.ID, len(d.Ranges))
	}
	for _, s := range d.Ranges {
		if !areSlots(s.From, s.To) || !isName(s.Drawer) {
			return fmt.Errorf("bundle %s has the slots %d to %d of drawer %q", d.ID, s.From, s.To, s.Drawer)
		}
	}
	return nil
}
