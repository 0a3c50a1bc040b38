// Package single keeps all events of a recipient in one partition, with one document for each
// event. This is the simplest layout, and the first one that the hub's founders tried and gave up.
// It is a baseline for comparisons, not for use.
//
//	container  partition  document
//	single     recipient  queue   the last sequence number; for each cabinet the numbers of saved and acknowledged
//	                              events, and the last acknowledged number; for each group the open bundle
//	single     recipient  event   one document for each event, under the event's id, so that it is stored once
//	single     recipient  bundle  its cabinet and the numbers of its first and last event
//
// Every path of every document is indexed, as Cosmos does by default.
//
//   - Save creates up to 99 events and replaces the queue in one conditional, transactional
//     batch, which is possible because all are in one partition. A longer Save needs several
//     batches, one after the other, because each depends on the queue of the previous one.
//   - Peek reads the queue; queries the first event of each cabinet with events, concurrently
//     if there are several; and reads the events of the earliest cabinet with an ordered query,
//     in pages of 1,000. Each page needs the continuation of the previous one, so the pages of
//     the single partition cannot be read concurrently.
//   - Add creates the bundle and replaces the queue in one batch. Acknowledge reads both and
//     replaces the queue; it does not change events.
//
// The package improves on the founders' layout in two ways, so that only the layout itself is
// measured: a cursor records the acknowledged events, where a flag in each event would cost 51,200
// writes for the largest Dequeue; and a bundle has the numbers of its first and last event instead
// of a list of ids.
//
// Its conformance test lists its guarantees. These limits remain: a Save of more than 99 events
// becomes visible batch by batch, and if it fails, its first events may be stored; a repeated Save
// stores the other events. A write whose response was lost is Uncertain, and a repeated Add may then
// fail although the first one succeeded. The layout does not order events by recipient, does not
// support operators, answers and notices, and does not delete old events.
package single
