package cosmos

import (
	"container/list"
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// known is what this node happens to know about the recipients that it has served
// last: how much they have received, and where their cabinets go on. Nothing that
// must be right rests on the former, which may be old; the latter never changes.
type known struct {
	mu    sync.Mutex
	of    map[domain.ActorID]*list.Element
	order *list.List // of *knownRecipient, the one used last in front
	size  int        // recipients, cabinets and tails; see maxKnown
}

type knownRecipient struct {
	recipient domain.ActorID
	head      *head // the newest that was read or written, as far as it is of use here
	firsts    map[cabinetName]firstEvent
}

// A firstEvent is the one just behind a place. Slots are filled once, so it is the
// same for ever.
type firstEvent struct {
	ordinal, slot int // the place
	sequence      domain.Sequence
}

// maxKnown bounds the memory, in units of some 300 bytes: one for each cabinet, one for each
// recipient, who may have none, and what their tails take.
const maxKnown = 100_000

func newKnown() *known {
	return &known{of: make(map[domain.ActorID]*list.Element), order: list.New()}
}

// saw notes a head that is or was stored, unless a newer one is known.
func (k *known) saw(recipient domain.ActorID, h *head) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.of[recipient]
	if e == nil {
		e = k.order.PushFront(&knownRecipient{recipient: recipient, head: &head{}, firsts: make(map[cabinetName]firstEvent)})
		k.of[recipient] = e
		k.size++
	}
	k.order.MoveToFront(e)
	r := e.Value.(*knownRecipient)
	if h.Watermark < r.head.Watermark {
		return
	}
	k.size += knownSize(h) - knownSize(r.head)
	r.head = &head{Watermark: h.Watermark, Cabinets: h.Cabinets} // a head is never changed once it is stored
	for k.size > maxKnown && k.order.Len() > 1 {
		oldest := k.order.Remove(k.order.Back()).(*knownRecipient)
		k.size -= 1 + knownSize(oldest.head)
		delete(k.of, oldest.recipient)
	}
}

// knownSize returns what a head takes, in units of maxKnown.
func knownSize(h *head) int { return len(h.Cabinets) + h.tailBytes()/300 }

// head returns the newest head that was seen, nil if none is remembered. Only its
// watermark and its cabinets are set.
func (k *known) head(recipient domain.ActorID) *head {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.of[recipient]
	if e == nil {
		return nil
	}
	k.order.MoveToFront(e)
	return e.Value.(*knownRecipient).head
}

// sawFirst notes which event is the first behind a place.
func (k *known) sawFirst(cabinet domain.CabinetKey, at position, first domain.Sequence) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.of[cabinet.Recipient]; e != nil {
		e.Value.(*knownRecipient).firsts[nameOf(cabinet)] = firstEvent{at.Ordinal, at.Slot, first}
	}
}

// first returns the sequence number of the first event behind a place, 0 if it
// is not remembered.
func (k *known) first(cabinet domain.CabinetKey, at position) domain.Sequence {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.of[cabinet.Recipient]
	if e == nil {
		return 0
	}
	f := e.Value.(*knownRecipient).firsts[nameOf(cabinet)]
	if f.ordinal != at.Ordinal || f.slot != at.Slot {
		return 0
	}
	return f.sequence
}
