// Package push holds every commit to the containers streams and cursors to the invariants of
// the push side.
//
// What it knows of the documents it knows from the layout that package cosmos/push documents,
// and not from its code. The rules are named as in the design of the push side:
//
//	P1  numbers of entries are dense and given out once; an entry that was published never
//	    changes; a cursor never goes back
//	P2  triggered = delivered + errored + cancelled + expired + outstanding
//	P3  no position ends twice: what has ended is outstanding again only as often as replays
//	    were requested, and each counter
//	    rises by what has ended in the same commit
//	P4  what is counted as delivered was accepted by the receiver
//	P5  a commit by which another incarnation takes a cursor settles nothing
//	P6  the retries of a cursor change only together with it, and are as many as it says
//	P7  a cursor, and each of its retries, is listed in its shard, no later than it is due
//	P8  a failed attempt is counted once, none is made beyond the budget, and no attempt is
//	    counted that was not made
//
//	P13 the token of a consumer is sealed, and no other token is stored
//	P14 a change of a watched document and what says so are one commit; nothing else stores a
//	    change; it is removed once it is published, and each entry of the stream of the document
//	    is the change with its number
//	P15 what a consumer has fetched is not open, and in no other bundle
//	P18 a consumer keeps its place, and its cursor begins there; so does that of a watch behind
//	    the changes that its resource had
//	P20 the bundle of a consumer is the same until it is dequeued, which ends its deliveries
//
// P9 to P17 are about calls and receivers. The world that calls them holds those of them that
// a simulation can see: P8, P11 and P15 in time, P10 by its end, P12 at each dial. The world of the
// broker holds P18 (a consumer gets every message that was accepted after its PUT was answered, and
// none from before the PUT) and P19 (a message that was accepted exists, once, as it was sent). The
// world of subscriptions holds both for owners and topics, that the cursor of what was deleted is
// retired, and P16 (a subscription that is ordered is called with nothing behind a delivery that
// has not ended) before each call. At each assignment of shards, the world holds P21: a node takes
// no shard of one that it has seen to be alive in the last 10 seconds; if its fail-safe is off, none of
// one that died later than 10 seconds after its start, unless it was asked about a cursor of the shard.
package push
