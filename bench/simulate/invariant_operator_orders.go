package simulate

import "fmt"

// What operators do changes what a ledger may expect. An order is pending from when it
// is given until its outcome is known.

// beginOrder notes that an operator is about to take a bundle, and reports whether it
// is one that was handed out.
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

// beginRelease notes that the events of a bundle may come again.
func (l *referenceLedger) beginRelease(actor, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checker.Withdraw(actor, id, true)
}

// endOrder notes what came of it.
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

// orderState reports whether all orders about a bundle have an outcome, and whether one of
// them has taken it from its actor.
func (l *referenceLedger) orderState(actor, id string) (areKnown, isTaken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	return !b.isPending, b.isTaken
}

// An operatedQueue is what operators have done to a queue.
type operatedQueue struct {
	frozen    int  // tells one freeze from another; 0: perhaps not frozen
	freezes   int  // ever
	replaying int  // replays whose outcome is not known
	unsure    bool // something was replayed that nobody knows
}

func (l *referenceLedger) queueOf(actor string) *operatedQueue {
	o := l.queues[actor]
	if o == nil {
		o = new(operatedQueue)
		l.queues[actor] = o
	}
	return o
}

// beginFreeze notes that it is not known whether a queue is frozen.
func (l *referenceLedger) beginFreeze(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.queueOf(actor)
	o.freezes++
	o.frozen = 0
}

// endFreeze notes that it is frozen.
func (l *referenceLedger) endFreeze(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.queueOf(actor)
	o.frozen = o.freezes
}

// freezeNumber names the freeze that a queue is in, 0 if it is perhaps not frozen.
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

// noteFrozenAnswer is told that a request met a frozen queue.
func (sim *simulation) noteFrozenAnswer(actor string) {
	sim.MarkReached("a request met a frozen queue")
	if !sim.work.ledger.wasFrozen(actor) {
		sim.Fail(fmt.Errorf("the queue of %s is said to be frozen, and nobody has frozen it", actor))
	}
}

// checkNotFrozen is told that a request was answered as if the queue were not frozen, and by
// what freeze it was when the request began.
func (sim *simulation) checkNotFrozen(actor string, before int, what string) {
	if before > 0 && sim.work.ledger.freezeNumber(actor) == before {
		sim.Fail(fmt.Errorf("a %s of %s was answered while its queue was frozen", what, actor))
	}
}

// beginReplay notes that any bundle of an actor may come again.
func (l *referenceLedger) beginReplay(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queueOf(actor).replaying++
}

// endReplay notes which one did, "" if none.
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

// canReplay reports whether a bundle that was confirmed may be open again.
func (l *referenceLedger) canReplay(b *handedBundle) bool {
	o := l.queueOf(b.actor)
	return b.replays > 0 || o.replaying > 0 || o.unsure
}
