package simulate

import "fmt"

// What operators do changes what a ledger may expect. An order is pending from when it
// is given until its outcome is known.

// orderBegins notes that an operator is about to take a bundle, and reports whether it
// is one that was handed out.
func (l *referenceLedger) orderBegins(actor, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	if b == nil || b.isPending {
		return false
	}
	b.isPending = true
	return true
}

// releaseBegins notes that the events of a bundle may come again.
func (l *referenceLedger) releaseBegins(actor, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge.Withdraw(actor, id, true)
}

// orderEnds notes what came of it.
func (l *referenceLedger) orderEnds(actor, id, what string, isDone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	b.isPending = false
	b.isTaken = b.isTaken || isDone
	switch {
	case what == "release" && !isDone && !b.isTaken:
		l.judge.Withdraw(actor, id, false)
	case what == "skip" && isDone:
		l.confirm(b)
	}
}

// orders reports whether all orders about a bundle have an outcome, and whether one of
// them has taken it from its actor.
func (l *referenceLedger) orders(actor, id string) (areKnown, isTaken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bundles[actor+"|"+id]
	return !b.isPending, b.isTaken
}

// An operated is what operators have done to a queue.
type operated struct {
	frozen    int  // tells one freeze from another; 0: perhaps not frozen
	freezes   int  // ever
	replaying int  // replays whose outcome is not known
	unsure    bool // something was replayed that nobody knows
}

func (l *referenceLedger) operated(actor string) *operated {
	o := l.queues[actor]
	if o == nil {
		o = new(operated)
		l.queues[actor] = o
	}
	return o
}

// freezeBegins notes that it is not known whether a queue is frozen.
func (l *referenceLedger) freezeBegins(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.operated(actor)
	o.freezes++
	o.frozen = 0
}

// freezeEnds notes that it is frozen.
func (l *referenceLedger) freezeEnds(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.operated(actor)
	o.frozen = o.freezes
}

// frozen names the freeze that a queue is in, 0 if it is perhaps not frozen.
func (l *referenceLedger) frozen(actor string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.operated(actor).frozen
}

func (l *referenceLedger) wasFrozen(actor string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.operated(actor).freezes > 0
}

// isFrozen is told that a request met a frozen queue.
func (w *world) isFrozen(actor string) {
	w.reached("a request met a frozen queue")
	if !w.ledger.wasFrozen(actor) {
		w.fail(fmt.Errorf("the queue of %s is said to be frozen, and nobody has frozen it", actor))
	}
}

// isThawed is told that a request was answered as if the queue were not frozen, and by
// what freeze it was when the request began.
func (w *world) isThawed(actor string, before int, what string) {
	if before > 0 && w.ledger.frozen(actor) == before {
		w.fail(fmt.Errorf("a %s of %s was answered while its queue was frozen", what, actor))
	}
}

// replayBegins notes that any bundle of an actor may come again.
func (l *referenceLedger) replayBegins(actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.operated(actor).replaying++
}

// replayEnds notes which one did, "" if none.
func (l *referenceLedger) replayEnds(actor, id string, isUnsure bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.operated(actor)
	o.replaying--
	o.unsure = o.unsure || isUnsure
	if b := l.bundles[actor+"|"+id]; b != nil {
		b.replays++
	}
}

// mayReplay reports whether a bundle that was confirmed may be open again.
func (l *referenceLedger) mayReplay(b *handed) bool {
	o := l.operated(b.actor)
	return b.replays > 0 || o.replaying > 0 || o.unsure
}
