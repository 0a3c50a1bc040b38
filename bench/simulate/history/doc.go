// Package history checks whether a sequential hub can explain what several clients saw of one mailbox.
//
// A mailbox holds the events and bundles of one recipient. Clients send to it, peek and dequeue, some of them
// concurrently. A [Recorder] notes when each operation began, when it ended and what the answer was. [History.Check]
// looks for an order of the operations in which each takes effect at one moment between its begin and its end, and in
// which a correct hub gives just these answers. This is linearizability, and porcupine does the search.
//
// # The contract, as one mailbox sees it
//
//   - Events wait in the order of their Sends. The events of one Send become visible at
//     the same moment, whatever their cabinets. An id that was sent before is not a new
//     event: with the same content it is a duplicate, with another a conflict (H1,
//     H2, H5).
//   - A bundle takes events from the front of one cabinet, at most as many as the rules of
//     bundling allow (H3). It may take fewer for reasons that clients do not see:
//     the capacity of drawers, or a node that has not seen the newest events yet.
//   - It begins with the first waiting event of the requested groups (H4).
//   - Each group has at most one open bundle, and Peek repeats it (H6). A Peek of
//     several groups returns the bundle that has been open longest.
//   - Dequeue removes the events of the open bundle, once. Any other id is not
//     found (H7).
//
// Events that are saved during a Peek may or may not be seen, and a Peek of several groups may miss a bundle that is
// being opened concurrently in another group. So a Peek without a bundle proves that no bundle is open, and that no
// event waits whose Send had ended when the Peek began. [Options] weaken this further.
//
// # Operations without an answer
//
// An operation whose answer was lost may have taken effect at any later time, or never. A Send or Dequeue may take
// effect after all others, which is equivalent to never. A Peek without an answer proves nothing; the bundle that it
// may have opened appears in a later Peek, and must fit either of the two requests. Clients dequeue only ids that
// a Peek returned to them, or ids that no bundle has.
//
// # Cost
//
// The search is exponential in the worst case. Histories of up to 60 operations of up to 4 clients usually take less
// than a millisecond. The search is limited by a number of steps, not by a clock, so a history has the same verdict
// on every machine, and inside a testing/synctest bubble. A search that reaches its limit is inconclusive, and
// callers treat it as a failure.
package history
