// Package push checks every commit to the containers streams and cursors against the invariants of the push side.
//
// It uses the layout of documents that package cosmos/push describes, and shares no code with that package. The rules
// have the names of the push side's design:
//
//	P1  numbers of entries are dense and assigned once; a published entry never
//	    changes; a cursor never moves back
//	P2  triggered = delivered + errored + cancelled + expired + outstanding
//	P3  no delivery ends twice: an ended delivery is outstanding again only once for each
//	    requested replay, and each counter increases by the deliveries that ended in the
//	    same commit
//	P4  a delivery that is counted as delivered was accepted by the receiver
//	P5  a commit by which another incarnation takes over a cursor settles nothing
//	P6  the retries of a cursor change only in the same commit as the cursor, and match its count
//	P7  a cursor, and each of its retries, is listed in its shard, no later than it is due
//	P8  a failed attempt is counted once, no attempt exceeds the budget, and every counted
//	    attempt was made
//	P13 only the token of a consumer is stored, and it is encrypted
//	P14 a change of a watched document and its record are stored in one commit, and only such a
//	    commit stores a record; a record is removed after it is published; each entry of the
//	    stream of the document is the change with its number
//	P15 an entry that a consumer has fetched is not open, and is in no other bundle
//	P18 the position of a consumer never changes, and its cursor begins there; the cursor of a
//	    watch begins after the changes that its resource had when the watch was created
//	P20 the bundle of a consumer stays the same until it is dequeued, which ends its deliveries
//
// P9 to P17 concern calls and receivers. The simulations check the rules whose effects they observe: P8, P11 and P15
// during a run, P10 at its end, P12 at each dial. The broker simulation checks P18 (a consumer receives every message
// that was accepted after its PUT was answered, and no message from before the PUT) and P19 (an accepted message exists
// exactly once, with the content that was sent).
//
// The subscription simulation checks P18 and P19 for owners and topics. It also checks that the cursor of a deleted
// subscription is retired, and before each call it checks P16 (an ordered subscription is not called with an entry
// after a delivery that has not ended). At each assignment of shards, it checks P21: a node takes no shard of a node
// that was alive in the last 10 seconds. If the node's fail-safe is disabled, it also takes no shard of a node that died
// later than 10 seconds after its own start, unless it received a request for a cursor of the shard.
package push
