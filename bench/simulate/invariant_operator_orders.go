package simulate

import "fmt"

// Orders of operators change what the ledger expects. An order is pending from the request until its outcome is
// known.

// beginOrder notes that an operator is about to release or skip a bundle. It returns false if no actor has received
// the bundle, or another order is pending.
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

// endOrder notes the outcome of an order.
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

// orderState reports whether the outcomes of all orders about a bundle are known, and whether one of them has
// released or skipped it.
func (l *referenceLedger) orderState(actor, id string) (areKnown, isTaken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	return !b.isPending, b.isTaken
}

// An operatedQueue holds the effects of orders on a queue.
type operatedQueue struct {
	frozen    int  // number of the current freeze; 0: perhaps not frozen
	freezes   int  // number of freezes so far
	replaying int  // pending replays
	unsure    bool // a replay whose bundle is unknown may have happened
}

func (l *referenceLedger) queueOf(actor string) *operatedQueue {
	o := l.queues[actor]
	if o == nil {
		o = new(operatedQueue)
		l.queues[actor] = o
	}
	return o
}

// beginFreeze notes that a freeze or an unfreeze was requested, so the queue
// may or may not be frozen.
func (l *referenceLedger) beginFreeze(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.queueOf(actor)
	o.freezes++
	o.frozen = 0
}

// endFreeze notes that a freeze succeeded, so the queue is frozen.
func (l *referenceLedger) endFreeze(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.queueOf(actor)
	o.frozen = o.freezes
}

// freezeNumber returns the number of the freeze of a queue, 0 if it is perhaps not frozen.
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

// noteFrozenAnswer notes that a request was refused because of a frozen queue. It fails the simulation if the queue
// was never frozen.
func (sim *simulation) noteFrozenAnswer(actor string) {
	sim.MarkReached("a request met a frozen queue")
	if !sim.work.ledger.wasFrozen(actor) {
		sim.Fail(fmt.Errorf("the queue of %s is reported as frozen, but no operator has frozen it", actor))
	}
}

// checkNotFrozen fails the simulation if a request was answered while its queue was frozen. before is the
// freezeNumber when the request began.
func (sim *simulation) checkNotFrozen(actor string, before int, what string) {
	if before > 0 && sim.work.ledger.freezeNumber(actor) == before {
		sim.Fail(fmt.Errorf("a %s of %s succeeded while its queue was frozen", what, actor))
	}
}

// beginReplay allows any bundle of an actor to be handed out again.
func (l *referenceLedger) beginReplay(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queueOf(actor).replaying++
}

// endReplay notes which bundle was replayed; "" if none.
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
func (l *referenceLedger) canReplay(b *handedBundle) bool {
	o := l.queueOf(b.actor)
	return b.replays > 0 || o.replaying > 0 || o.unsure
}
