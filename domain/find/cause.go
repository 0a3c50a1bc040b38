package find

import "time"

// A Cause is the reason why an event or a bundle waits. The causes of a delivery are those of
// package inspect.
type Cause string

// The causes.
const (
	CauseSaving        Cause = "saving"         // a Save is under way
	CauseFrozen        Cause = "frozen"         // an operator has frozen the mailbox
	CauseDamaged       Cause = "damaged"        // the first event of the cabinet cannot be read
	CauseDomainSilent  Cause = "domain-silent"  // the domain has not made the content yet
	CauseDomainFailing Cause = "domain-failing" // the domain has failed to make the content
	CauseContentGone   Cause = "content-gone"   // the content was deleted
	CauseNotDequeued   Cause = "not-dequeued"   // the actor has not confirmed the open bundle
	CauseOtherBundle   Cause = "other-bundle"   // another bundle of the group is open
	CauseOlderEvents   Cause = "older-events"   // older events of the same cabinet wait
	CauseOlderCabinet  Cause = "older-cabinet"  // another cabinet of the group has older events
	CauseNotPeeked     Cause = "not-peeked"     // the actor has not peeked
	CauseNotice        Cause = "notice"         // a notice was not delivered
)

// Causes are all causes of events and bundles, in the order in which they have to end.
var Causes = []Cause{
	CauseSaving, CauseFrozen, CauseDamaged, CauseDomainSilent, CauseDomainFailing, CauseContentGone,
	CauseOtherBundle, CauseNotDequeued, CauseOlderCabinet, CauseOlderEvents, CauseNotPeeked, CauseNotice,
}

// A Wait is what an event, a bundle or a delivery waits for.
type Wait struct {
	Cause Cause
	Since time.Time // zero: the time is not stored
	Text  string    // the wait in a sentence
	Next  string    // what to do about it
}
