package find

import "time"

// A Cause is the reason why an event or a bundle waits. A delivery has an [inspect.Cause].
type Cause string

// The causes.
const (
	CauseSaving        Cause = "saving"         // the Save of the event is in progress
	CauseFrozen        Cause = "frozen"         // an operator has frozen the mailbox
	CauseDamaged       Cause = "damaged"        // the first event of the cabinet cannot be read
	CauseDomainSilent  Cause = "domain-silent"  // the domain has not produced the content yet
	CauseDomainFailing Cause = "domain-failing" // the domain failed to produce the content
	CauseContentGone   Cause = "content-gone"   // the content was deleted
	CauseNotDequeued   Cause = "not-dequeued"   // the actor has not dequeued the open bundle
	CauseOtherBundle   Cause = "other-bundle"   // another bundle of the group is open
	CauseOlderEvents   Cause = "older-events"   // older events of the same cabinet wait
	CauseOlderCabinet  Cause = "older-cabinet"  // another cabinet of the group has older events
	CauseNotPeeked     Cause = "not-peeked"     // the actor has not sent a Peek
	CauseNotice        Cause = "notice"         // a notice was not delivered
)

// Causes lists all causes of events and bundles, in the order in which they must end.
var Causes = []Cause{
	CauseSaving, CauseFrozen, CauseDamaged, CauseDomainSilent, CauseDomainFailing, CauseContentGone,
	CauseOtherBundle, CauseNotDequeued, CauseOlderCabinet, CauseOlderEvents, CauseNotPeeked, CauseNotice,
}

// A Wait describes a reason why an event, a bundle or a delivery waits.
type Wait struct {
	Cause Cause
	Since time.Time // time at which the wait began; zero: the time is not stored
	Text  string    // description of the cause
	Next  string    // what a reader can do to end the wait
}
