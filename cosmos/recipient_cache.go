package cosmos

import (
	"container/list"
	"maps"
	"slices"
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// A recipientCache caches data about the recipients that this node has served most recently. For each
// recipient, it contains the newest head that the node has observed, which may be stale, so correctness
// must not depend on it. It also contains locations of events in cabinets, which never change.
type recipientCache struct {
	mu    sync.Mutex
	of    map[domain.ActorID]*list.Element
	order *list.List // list of *knownRecipient, most recently used first
	size  int        // size of the cached recipients, cabinets and tails, in the units of maxKnown
}

type knownRecipient struct {
	recipient domain.ActorID
	head      *head // newest head that was read or written; only its fields Watermark and Cabinets are set
	firsts    map[cabinetName]firstEvent
	sealed    map[cabinetName][]extent // consecutive sealed drawers after the position of a gate, as the last Peek read them
}

// A firstEvent is the first event after a position. Because each slot is filled only once, it never
// changes.
type firstEvent struct {
	ordinal, slot int // ordinal and slot of the position
	sequence      domain.Sequence
}

// maxKnown limits the memory of a recipientCache, in units of about 300 bytes: one for each recipient,
// one for each of its cabinets, and one for every 300 bytes of tails.
const maxKnown = 100_000

func newRecipientCache() *recipientCache {
	return &recipientCache{of: make(map[domain.ActorID]*list.Element), order: list.New()}
}

// observeHead caches a head that is or was stored, unless the cache contains a newer head of the
// recipient.
func (k *recipientCache) observeHead(recipient domain.ActorID, h *head) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.of[recipient]
	if e == nil {
		e = k.order.PushFront(&knownRecipient{recipient: recipient, head: &head{}, firsts: make(map[cabinetName]firstEvent), sealed: make(map[cabinetName][]extent)})
		k.of[recipient] = e
		k.size++
	}
	k.order.MoveToFront(e)
	r := e.Value.(*knownRecipient)
	if h.Watermark < r.head.Watermark {
		return
	}
	k.size += knownSize(h) - knownSize(r.head)
	r.head = &head{Watermark: h.Watermark, Cabinets: h.Cabinets} // these maps are not modified after a head was stored, so they can be shared
	k.forgetRemoved(r)
	for k.size > maxKnown && k.order.Len() > 1 {
		oldest := k.order.Remove(k.order.Back()).(*knownRecipient)
		k.size -= 1 + knownSize(oldest.head) + extentsSize*len(oldest.sealed)
		delete(k.of, oldest.recipient)
	}
}

// forgetRemoved removes data about the cabinets that are not in the cached head of r. The caller holds
// mu.
func (k *recipientCache) forgetRemoved(r *knownRecipient) {
	if max(len(r.firsts), len(r.sealed)) <= len(r.head.Cabinets) {
		return
	}
	maps.DeleteFunc(r.firsts, func(name cabinetName, _ firstEvent) bool {
		_, ok := r.head.Cabinets[name]
		return !ok
	})
	before := len(r.sealed)
	maps.DeleteFunc(r.sealed, func(name cabinetName, _ []extent) bool {
		_, ok := r.head.Cabinets[name]
		return !ok
	})
	k.size -= extentsSize * (before - len(r.sealed))
}

// forgetRecipient removes a recipient from the cache after the store has lost writes.
func (k *recipientCache) forgetRecipient(recipient domain.ActorID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.of[recipient]; e != nil {
		r := k.order.Remove(e).(*knownRecipient)
		k.size -= 1 + knownSize(r.head) + extentsSize*len(r.sealed)
		delete(k.of, recipient)
	}
}

// knownSize returns the size of a cached head, in units of maxKnown.
func knownSize(h *head) int { return len(h.Cabinets) + h.tailBytes()/300 }

// newestHead returns the newest observed head of a recipient, or nil if the recipient is not in the
// cache. Only the fields Watermark and Cabinets of the head are set.
func (k *recipientCache) newestHead(recipient domain.ActorID) *head {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.of[recipient]
	if e == nil {
		return nil
	}
	k.order.MoveToFront(e)
	return e.Value.(*knownRecipient).head
}

// rememberFirst caches the number of the first event after a position.
func (k *recipientCache) rememberFirst(cabinet domain.CabinetKey, at position, first domain.Sequence) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.of[cabinet.Recipient]; e != nil {
		e.Value.(*knownRecipient).firsts[nameOf(cabinet)] = firstEvent{at.Ordinal, at.Slot, first}
	}
}

// firstSequence returns the cached number of the first event after a position. It returns 0 if the cache
// does not contain it.
func (k *recipientCache) firstSequence(cabinet domain.CabinetKey, at position) domain.Sequence {
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

// extentsSize is the size of the sealed drawers of a cabinet in the cache, in units of maxKnown.
const extentsSize = 3

// rememberSealed caches the sealed drawers with which found begins. The drawers in found are consecutive.
// A drawer that is not sealed may still be filled, so it is not cached.
func (k *recipientCache) rememberSealed(cabinet domain.CabinetKey, found []extent) {
	n := 0
	for n < len(found) && found[n].sealed {
		n++
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.of[cabinet.Recipient]
	if e == nil {
		return
	}
	r, name := e.Value.(*knownRecipient), nameOf(cabinet)
	if _, isCached := r.sealed[name]; isCached {
		k.size -= extentsSize
		delete(r.sealed, name)
	}
	if n > 0 {
		k.size += extentsSize
		r.sealed[name] = slices.Clone(found[:n])
	}
}

// sealedExtents returns the cached consecutive sealed drawers of a cabinet, beginning with the ordinal
// from. The result is empty if the drawer with that ordinal is not cached.
func (k *recipientCache) sealedExtents(cabinet domain.CabinetKey, from int) []extent {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.of[cabinet.Recipient]
	if e == nil {
		return nil
	}
	cached := e.Value.(*knownRecipient).sealed[nameOf(cabinet)]
	if len(cached) == 0 || from < cached[0].ordinal || from > cached[len(cached)-1].ordinal {
		return nil
	}
	return slices.Clone(cached[from-cached[0].ordinal:])
}
