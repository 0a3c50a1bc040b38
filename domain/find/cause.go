package find

import "time"

// A Cause is the reason why an event or a bundle waits. A delivery has an [inspect.Cause].
type Cause string

// The causes.
const (
	CauseSaving        Cause = "saving"         // the Save of the event has not ended
	CauseFrozen        Cause = "frozen"         // an operator has frozen the mailbox
	CauseDamaged       Cause = "damaged"        // the first event of the cabinet cannot be read
	CauseDomainSilent  Cause = "domain-silent"  // the domain has not yet produced the content
	CauseDomainFailing Cause = "domain-failing" // the domain failed to produce the content
	CauseContentGone   Cause = "content-gone"   // the content was deleted
	CauseNotDequeued   Cause = "not-dequeued"   // the actor has not dequeued the open bundle
	CauseOtherBundle   Cause = "other-bundle"   // a different bundle of the same group is open
	CauseOlderEvents   Cause = "older-events"   // the same cabinet has older waiting events
	CauseOlderCabinet  Cause = "older-cabinet"  // a different cabinet of the same group has older events
	CauseNotPeeked     Cause = "not-peeked"     // the actor has not sent a Peek
	CauseNotice        Cause = "notice"         // a notice is not delivered
)

// Causes lists all causes for which an event or a bundle can wait.
var Causes = []Cause{
	CauseSaving, CauseFrozen, CauseDamaged, CauseDomainSilent, CauseDomainFailing, CauseContentGone,
	CauseOtherBundle, CauseNotDequeued, CauseOlderCabinet, CauseOlderEvents, CauseNotPeeked, CauseNotice,
}

// A Wait is a reason why an event, a bundle or a delivery waits.
type Wait struct {
	Cause Cause
	Since time.Time // when the wait began, or zero if that is not stored
	Text  string    // description of the cause
	Next  string    // instruction that tells the reader how to end the wait
}
