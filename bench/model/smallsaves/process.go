package smallsaves

import "iter"

// A writerStep is the next step of a writer.
type writerStep uint8

const (
	readHead writerStep = iota
	reserve
	writePages
	countDrawers
	writeEntries
	commit
	saveSmall
	claim
	sealDrawers
	clearIntent
	flushPage
	flushCount
	flushEntry
	flushHead
	leaveDrawer
	proveGate
	closeDrawer
	removeEntries
	removePages
	removeDrawers
	clearClosed
)

// A flush moves n slots of a cabinet's tail, beginning at the slot from, into a page.
type flush struct {
	done                              uint8
	cabinet, drawer, ordinal, from, n uint8
	until                             uint8 // slot at which the page ends
	due                               uint8 // number of the entry that is due; 0 if no entry is due
	events                            [maxTail]numberedEvent
}

// A writerProcess is a process that saves, flushes or sweeps.
type writerProcess struct {
	working              bool
	id, job, incarnation uint8
	step                 writerStep
	headVersion          uint8 // version that the next write of the head expects
	head                 headDocument
	plan                 saveIntent
	done                 uint8 // completed parts of the plan, one bit each
	due                  uint8 // parts whose entry is due, one bit each
	refused              bool  // the reserve was refused, so the intent in the head may be this writer's own
	large                bool
	flushed              bool  // true if the copy of the head contains a flush that is not written yet
	eager                bool  // true if the writer flushes although no Save needs the flush
	left                 uint8 // cabinets whose full drawer is sealed, one bit each
	nFresh               uint8
	fresh                [3]uint8 // events of the batch that are not received yet
	flush                flush
	gate                 gateDocument
}

func (w *writerProcess) events() []uint8 { return w.fresh[:w.nFresh] }

// startOver discards everything that the writer has read.
func (w *writerProcess) startOver() {
	*w = writerProcess{working: true, id: w.id, job: w.job, incarnation: w.incarnation}
}

// finishPart marks a part of the plan as completed, and reports whether all parts are completed.
func (w *writerProcess) finishPart(j int) bool {
	w.done |= 1 << j
	if w.done != 1<<w.plan.n-1 {
		return false
	}
	w.done = 0
	return true
}

// unfinishedParts yields the parts of the plan that are not completed.
func (w *writerProcess) unfinishedParts() iter.Seq2[int, reservedPart] {
	return func(yield func(int, reservedPart) bool) {
		for j, p := range w.plan.all() {
			if w.done>>j&1 == 0 && !yield(j, p) {
				return
			}
		}
	}
}

// An actorStep is the next step of an actor.
type actorStep uint8

const (
	begin actorStep = iota
	readGate
	confirmGate
	readAgain
	choose
	compose
	repairEntry
	openBundle
	readBundle
	dequeue
	raisePosition
	updateEntry
	closeBundle
)

// A purpose is the reason why an actor updates the hints of a bundle.
type purpose uint8

const (
	noPurpose purpose = iota
	finishOther
	finishOwn
	healEntry
)

// An actor is a process that peeks and dequeues.
type actor struct {
	working   bool
	step      actorStep
	operation uint8
	bundle    uint8 // the bundle that the actor received last
	target    peekedBundle
	targetID  uint8
	purpose   purpose
	rangeNo   uint8 // index of the target's range whose hints are updated next
	gate      gateDocument
	head      headDocument
	entry     modelEntry
	next      peekedBundle
	drawer    drawerDocument
	raise     uint8 // number that an entry is raised to; 0 deletes it

	// The fields below are observed when the operation begins.
	dequeued uint8
	wasOpen  bool
	smallest [cabinets]uint8

	found [cabinets]uint8 // first numbers that the Peek read from cabinets
	limit uint8           // with inOrder: number before which the bundle must end
}

// restartOperation ends the current operation of an actor and begins the operation with number next.
func (a *actor) restartOperation(next uint8) {
	*a = actor{working: true, operation: next, bundle: a.bundle}
}

// peekAgain restarts a Peek at a step. The observations from the beginning of the Peek stay the
// same.
func (a *actor) peekAgain(step actorStep) {
	kept := actor{
		working: a.working, step: step, operation: a.operation, bundle: a.bundle,
		dequeued: a.dequeued, wasOpen: a.wasOpen, smallest: a.smallest,
	}
	if step != readGate {
		kept.gate, kept.found = a.gate, a.found
	}
	*a = kept
}

// startHints begins to update the hints of the target.
func (a *actor) startHints() {
	a.step, a.rangeNo, a.gate, a.drawer = raisePosition, 0, gateDocument{}, drawerDocument{}
}
