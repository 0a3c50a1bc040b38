package smallsaves

// A protocolRule is a rule of the protocol. Each mutation omits one rule.
type protocolRule uint64

const (
	claimFirst           protocolRule = 1 << iota // a rollback claims the head before it seals drawers
	trustSealedOnly                               // a drawer with a smaller ordinal than the head's is trusted only if it is sealed
	keepPlace                                     // the gate stores the position after the last acknowledged event
	denseOrdinals                                 // drawers of a cabinet have dense ordinals, and a missing ordinal is detected
	chooseCandidates                              // a Peek chooses among the cabinets whose head is ahead of the gate
	dequeueAtOnce                                 // a Dequeue is one batch
	confirmOpen                                   // a Peek confirms the gate before it repeats a bundle
	idsDecide                                     // a watermark that has moved does not prove that a Save succeeded
	entryOfEachFlush                              // with flushEntries: each flush writes the entry if it is due, not only the first flush of a drawer
	noteClosedDrawer                              // a sweep records in the head which drawer it closes
	sweepIfMatch                                  // a sweep closes a drawer only if the head has not changed
	keepPayloads                                  // a small Save that was refused does not delete its payloads
	knowTails                                     // the write that records an intent retains the tails in the head
	adoptPage                                     // if the page of a flush exists already, the flush ends at the end of that page
	createPage                                    // a flush never replaces a page
	countCondition                                // a flush raises the count of a drawer only if the count has not changed and the drawer is not sealed
	pageBeforeCount                               // a flush writes the page before it raises the count
	countFlushed                                  // a flush raises the count before the head records that the events are in pages
	flushedIfMatch                                // a flush replaces the head only if it has not changed
	smallIfMatch                                  // a small Save replaces the head only if it has not changed
	smallWithoutIntent                            // a small Save first resolves the intent in the head
	flushBeforeNewDrawer                          // a cabinet gets a new drawer only if the tail is empty
	flushBeforeLarge                              // a large Save reserves only if the tails of its cabinets are empty
	indexTail                                     // the index of received ids includes the ids of the tail
	fillFromHead                                  // a reader takes the extent of the last drawer from the head, not from the drawer's count
	readTail                                      // a reader reads the slots from position paged on in the tail
	readHeadDrawer                                // a reader finds the last drawer in the head, even if the drawer has no document
	pagesBeforeTail                               // a Peek compares the tail's first event with other cabinets only if no event waits in pages
	rejectOldHead                                 // a head that ends before a bundle is too old to read that bundle again
	keepOrder                                     // with inOrder: a bundle ends before the first event of another cabinet
	sealLeft                                      // with countWhenLeft: a drawer is sealed at its fill before the head leaves it
)

// ofVariants are rules that an older protocol lacks. If the scenario omits one of these rules, the
// writer that saves again after a drain omits the rule, too.
const ofVariants = claimFirst | trustSealedOnly | keepPlace | denseOrdinals | chooseCandidates | dequeueAtOnce | confirmOpen | idsDecide
