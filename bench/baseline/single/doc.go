// Package single keeps all events of a recipient in one partition, one document for
// each: the first thing that comes to mind, and what the hub's founders say failed. It
// is a baseline to measure against, not to be used.
//
//	container  partition  document
//	single     recipient  queue   the last sequence number, and for each cabinet how many events came and were
//	                              acknowledged, and up to which number; for each group, which bundle is open
//	single     recipient  event   one for each, under its own id, so that none is stored twice
//	single     recipient  bundle  its cabinet and the numbers of its first and last event
//
// Every path of every document is indexed, as Cosmos does by default.
//
//   - Save creates up to 99 events and replaces the queue in one transactional batch,
//     conditionally: one partition makes that natural. A longer Save takes several, one
//     after the other, since each builds on the queue that the one before has left.
//   - Peek reads the queue; asks for the first event of each cabinet that has any, at
//     once, if there are several; and reads the events of the one that comes first with
//     an ordered query, a page of 1,000 after the other. The next page is known by the
//     continuation of the one before, and one partition has no second to ask meanwhile.
//   - Add creates the bundle and replaces the queue in one batch. Acknowledge reads both
//     and replaces the queue: no event is touched.
//
// It is better than what it is a picture of in two ways, so that only the layout itself
// is measured: a cursor stands for what was acknowledged, where a flag in each event
// would have cost a Dequeue of 51,200 events as many writes; and a bundle says from
// where to where it goes, instead of listing its ids.
//
// What it promises is listed by its conformance test. What it does not: a Save of more
// than 99 events becomes visible batch by batch, and if it fails, some of it is stored,
// the first ones first; saving again stores the rest. A write whose answer was lost is
// Uncertain, and repeating an Add may then fail although it has happened. It does not
// order by recipient, knows no operators, answers and notices, and forgets nothing.
package single
