package simulate

import "fmt"

// Sometimes counts how often states were reached that are rare, and that the
// protocols are made for. A campaign that never reaches one of them has proved
// nothing about it, and fails.
type sometimes map[string]int

// rare are the states, each with the name by which it is counted.
const (
	rolledBackAnother  = "an intent of another process was rolled back"
	commitLost         = "a commit was carried out, and its answer was lost"
	ownConflict        = "a 409 or 412 that was one's own doing"
	foreignConflict    = "a 409 or 412 that was another's doing"
	staleBundle        = "a bundle that was computed from what is no longer so was refused"
	gateRace           = "two hubs raced for one gate"
	dequeueLost        = "a Dequeue was carried out, and its answer was lost"
	noHints            = "a hub died between a Dequeue and its hints"
	entryRaised        = "a catalog entry was raised on sight"
	entryInserted      = "a catalog entry was put back on sight"
	entryDeleted       = "a catalog entry was deleted on sight"
	sealedByReader     = "a drawer was sealed by a reader"
	handedOutAgain     = "an open bundle was handed out again"
	handedOutElsewhere = "an open bundle was handed out again by another hub"
	sentAgain          = "events were sent again after they were accepted"
	senderGaveUp       = "a request was carried out after its sender had given up"
	hubKilled          = "a hub was killed"
	hubRestarted       = "a hub was told to stop, and started again"
	hubPaused          = "a hub was paused"
	hubNotStarted      = "a hub could not start"
	zombieWrote        = "a write of a dead hub arrived"
	clockJumped        = "a clock jumped"
	busDropped         = "the bus dropped its connections"
	domainRefused      = "a domain was told that it could not send"
	domainUnsure       = "a domain did not know whether the bus has its events"
	domainDied         = "a domain died while it sent"
	otherOverBus       = "an event came with other content, over the bus"
	otherOverHTTP      = "an event came with other content, over HTTP"
	sentAgainByBus     = "events were sent again over the bus"
	poisoned           = "a message was poison"
	throttledForLong   = "the account throttled everybody for a while"
	gaveUp             = "a client gave up a request"
	misset             = "a hub had wrong settings"
	locksOut           = "an account refused everybody for a while"
	damaged            = "something was damaged"
	saidDamaged        = "an answer was that something is damaged"
	checkNamed         = "a check has named damage"
)

func newSometimes() sometimes {
	s := make(sometimes)
	for _, what := range []string{
		rolledBackAnother, commitLost, ownConflict, foreignConflict, staleBundle, gateRace, dequeueLost, noHints, entryRaised, entryInserted,
		entryDeleted, sealedByReader, handedOutAgain, handedOutElsewhere, sentAgain, senderGaveUp, hubKilled, hubRestarted, hubPaused,
		hubNotStarted, zombieWrote, clockJumped, busDropped, throttledForLong,
		domainRefused, domainUnsure, domainDied, otherOverBus, otherOverHTTP, sentAgainByBus, poisoned,
		gaveUp, misset, locksOut, damaged, saidDamaged, checkNamed,
	} {
		s[what] = 0
	}
	return s
}

// reached counts one.
func (s sometimes) reached(what string) {
	if _, ok := s[what]; !ok {
		panic(fmt.Sprintf("%q is no rare state that anybody waits for", what))
	}
	s[what]++
}
