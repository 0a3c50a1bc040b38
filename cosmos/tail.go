package cosmos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/messagehub/messagehub/domain"
)

// The newest events of a cabinet may be stored in the head until there are enough for a page. These
// events are the tail of the cabinet: the slots from Paged up to Fill of the drawer in the head. The
// events in a tail are committed and never change. If all events of a drawer are in the tail, the drawer
// may have no document yet.

// A tail is the decoded tail of a cabinet. A nil *tail is empty.
type tail struct {
	drawer string
	paged  int // slot of the first event
	events []storedEvent
	saves  []saveRun // spans in which the events were saved, if they are stored
}

// maxTail limits the events of a tail that a node reads. The limit for tails that a node writes is
// Options.TailEvents.
const maxTail = 256

// inPages returns the number of slots of the last drawer that are in pages.
func (c cabinetState) inPages() int {
	if len(c.Tail) == 0 {
		return c.Fill
	}
	return c.Paged
}

// tailLen returns the number of events in the tail.
func (c cabinetState) tailLen() int { return c.Fill - c.inPages() }

// isPageless reports whether all events of the last drawer are in the tail. Such a drawer may have
// neither a page nor a document.
func (c cabinetState) isPageless() bool { return len(c.Tail) > 0 && c.Paged == 0 }

// decodeTail returns the tail of a cabinet, or nil if the cabinet has no tail.
func (c cabinetState) decodeTail(cabinet domain.CabinetKey) (*tail, error) {
	if len(c.Tail) == 0 {
		return nil, nil //nolint:nilnil // a nil tail is empty
	}
	end := len(c.Tail) - 4
	n := c.Fill - c.Paged
	if end < 1 || n < 1 || n > maxTail || c.Tail[0] != tailEventsVersion ||
		c.tailSum(c.Tail[:end]) != binary.LittleEndian.Uint32(c.Tail[end:]) {
		return nil, errTail
	}
	t := &tail{drawer: c.Drawer, paged: c.Paged, events: make([]storedEvent, 0, n), saves: c.tailSaves()}
	base := packedBase{folder: payloadFolder(c.Drawer)}
	last := domain.Sequence(0)
	ascending := true
	err := decodeEvents(c.Tail[:end], c.Paged, c.Fill, base, cabinet, func(_ int, e *storedEvent) bool {
		ascending = ascending && e.Sequence > last
		last = e.Sequence
		t.events = append(t.events, *e)
		return true
	})
	if err != nil || !ascending || last != c.Sequence {
		return nil, errTail
	}
	return t, nil
}

var errTail = errors.New("the events in a head cannot be decoded")

// encodeTail encodes events as the tail. The first event is in slot c.Paged.
func (c cabinetState) encodeTail(events []storedEvent) packed {
	if len(events) == 0 {
		return nil
	}
	data := appendEvents(make([]byte, 0, 64*len(events)+64), events, packedBase{folder: payloadFolder(c.Drawer)})
	return binary.LittleEndian.AppendUint32(data, c.tailSum(data))
}

// tailSum returns the CRC-32C of encoded events and of the members that determine their slots.
func (c cabinetState) tailSum(data []byte) uint32 {
	return crc32.Update(crc32.Checksum(data, castagnoli), castagnoli, fmt.Appendf(nil, "|%s|%d", c.Drawer, c.Paged))
}

// tailBytes returns the encoded size in bytes of all tails of h.
func (h *head) tailBytes() int {
	n := 0
	for _, c := range h.Cabinets {
		n += (len(c.Tail) + 2) / 3 * 4
	}
	return n
}

// hasTail reports whether any cabinet of h has a tail.
func (h *head) hasTail() bool {
	for _, c := range h.Cabinets {
		if len(c.Tail) > 0 {
			return true
		}
	}
	return false
}

// validateTails returns an error if a tail of h is damaged.
func (h *head) validateTails() error {
	for name, c := range h.Cabinets {
		if len(c.Tail) == 0 {
			continue
		}
		if !areSlots(c.Paged, c.Fill) || c.Drawer == "" || c.Sequence > h.Watermark {
			return fmt.Errorf("cabinet %q has a tail from slot %d to %d of drawer %q, up to number %d", name, c.Paged, c.Fill, c.Drawer, c.Sequence)
		}
		if _, err := c.decodeTail(domain.CabinetKey{}); err != nil {
			return fmt.Errorf("cabinet %q: %w", name, err)
		}
		if h.isFilling(name) {
			return fmt.Errorf("cabinet %q has a tail, and the intent fills it", name)
		}
	}
	return nil
}

// slotEvents returns the events in the slots [from, until), which must all be in t.
func (t *tail) slotEvents(from, until int) []storedEvent {
	return t.events[from-t.paged : until-t.paged]
}

// weightOf returns the sum of the weights of events.
func weightOf(events []storedEvent) domain.Weight {
	var sum domain.Weight
	for i := range events {
		sum = min(sum.Add(events[i].Weight), maxWeighed)
	}
	return sum
}
