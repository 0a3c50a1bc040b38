// Package push checks every commit to the containers streams and cursors against the invariants of the push side.
//
// It knows the documents from the layout that package cosmos/push documents, and shares no code with that package.
// The rules have the names of the push side's design:
//
//	P1  numbers of entries are dense and assigned once; a published entry never
//	    changes; a cursor never moves back
//	P2  triggered = delivered + errored + cancelled + expired + outstanding
//	P3  no position ends twice: an ended one is outstanding again only as often as replays
//	    were requested, and each counter increases by what ended in the same commit
//	P4  a delivery that is counted as delivered was accepted by the receiver
//	P5  a commit by which another incarnation takes over a cursor settles nothing
//	P6  the retries of a cursor change only together with it, and match its count
//	P7  a cursor, and each of its retries, is listed in its shard, no later than it is due
//	P8  a failed attempt is counted once, no attempt exceeds the budget, and every counted
//	    attempt was made
//	P13 the token of a consumer is sealed, and no other token is stored
//	P14 a change of a watched document and its record are stored in one commit; nothing else
//	    stores a record; it is removed once it is published, and each entry of the stream of
//	    the document is the change with its number
//	P15 an entry that a consumer has fetched is not open, and in no other bundle
//	P18 a consumer keeps its position, and its cursor begins there; the cursor of a watch begins
//	    behind the changes that its resource had
//	P20 the bundle of a consumer stays the same until it is dequeued, which ends its deliveries
//
// P9 to P17 are about calls and receivers. The simulations check those that they can see: P8, P11 and P15 in time,
// P10 by its end, P12 at each dial. The broker simulation checks P18 (a consumer gets every message that was accepted
// after its PUT was answered, and none from before the PUT) and P19 (an accepted message exists, once, as it was
// sent). The subscription simulation checks both for owners and topics, that the cursor of a deleted subscription is
// retired, and P16 before each call (an ordered subscription is not called with an entry behind a delivery that has
// not ended). At each assignment of shards, the simulation checks P21: a node takes no shard of a node that was alive
// in the last 10 seconds; if its fail-safe is disabled, also none of a node that died later than 10 seconds after its
// own start, unless it was asked about a cursor of the shard.
package push
