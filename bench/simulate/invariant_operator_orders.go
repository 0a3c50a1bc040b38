package simulate

import "fmt"

// The functions below record operators' orders, because orders change the deliveries that the ledger expects. An order
// is pending from its request until its outcome is known.

// beginOrder records that an operator is about to release or skip a bundle. It returns false, and records nothing, if no
// actor has received the bundle or if an order about it is pending.
func (l *referenceLedger) beginOrder(actor, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	if b == nil || b.isPending {
		return false
	}
	b.isPending = true
	return true
}

// beginRelease allows the events of a bundle to be delivered again.
func (l *referenceLedger) beginRelease(actor, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checker.Withdraw(actor, id, true)
}

// endOrder records the outcome of an order.
func (l *referenceLedger) endOrder(actor, id, what string, isDone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	b.isPending = false
	b.isTaken = b.isTaken || isDone
	switch {
	case what == "release" && !isDone && !b.isTaken:
		l.checker.Withdraw(actor, id, false)
	case what == "skip" && isDone:
		l.confirmBundle(b)
	}
}

// orderState reports two things: whether the outcomes of all orders about a bundle are known, and whether an order has
// released or skipped the bundle.
func (l *referenceLedger) orderState(actor, id string) (areKnown, isTaken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	return !b.isPending, b.isTaken
}

// An operatedQueue holds the effects of operators' orders on a queue.
type operatedQueue struct {
	frozen    int  // number of the current freeze; 0 if the queue is not known to be frozen
	freezes   int  // number of freezes so far
	replaying int  // pending replays
	unsure    bool // true if an unknown bundle may have been replayed
}

func (l *referenceLedger) queueOf(actor string) *operatedQueue {
	o := l.queues[actor]
	if o == nil {
		o = new(operatedQueue)
		l.queues[actor] = o
	}
	return o
}

// beginFreeze records that an operator requests a freeze or a thaw. Until the outcome is known, the queue may or may not
// be frozen.
func (l *referenceLedger) beginFreeze(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.queueOf(actor)
	o.freezes++
	o.frozen = 0
}

// endFreeze records that a freeze succeeded, so the queue is frozen.
func (l *referenceLedger) endFreeze(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.queueOf(actor)
	o.frozen = o.freezes
}

// freezeNumber returns the number of the queue's current freeze, or 0 if the queue is not known to be frozen.
func (l *referenceLedger) freezeNumber(actor string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queueOf(actor).frozen
}

func (l *referenceLedger) wasFrozen(actor string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queueOf(actor).freezes > 0
}

// noteFrozenAnswer counts a request that was refused because the queue is frozen. It fails the simulation if the queue
// was never frozen.
func (sim *simulation) noteFrozenAnswer(actor string) {
	sim.MarkReached("a request met a frozen queue")
	if !sim.work.ledger.wasFrozen(actor) {
		sim.Fail(fmt.Errorf("the queue of %s is reported as frozen, but no operator has frozen it", actor))
	}
}

// checkNotFrozen fails the simulation if a request succeeded while its queue was frozen. before is the number that
// freezeNumber returned when the request began.
func (sim *simulation) checkNotFrozen(actor string, before int, what string) {
	if before > 0 && sim.work.ledger.freezeNumber(actor) == before {
		sim.Fail(fmt.Errorf("a %s of %s succeeded while its queue was frozen", what, actor))
	}
}

// beginReplay allows hubs to return any bundle of an actor again.
func (l *referenceLedger) beginReplay(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queueOf(actor).replaying++
}

// endReplay records which bundle was replayed. id is "" if no bundle was replayed.
func (l *referenceLedger) endReplay(actor, id string, isUnsure bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.queueOf(actor)
	o.replaying--
	o.unsure = o.unsure || isUnsure
	if b := l.bundles[actor+"|"+id]; b != nil {
		b.replays++
	}
}

// canReplay reports whether a confirmed bundle may be open again.
func (l *referenceLedger) canReplay(b *receivedBundle) bool {
	o := l.queueOf(b.actor)
	return b.replays > 0 || o.replaying > 0 || o.unsure
}
