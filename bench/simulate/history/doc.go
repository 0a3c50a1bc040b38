// Package history checks whether a sequential hub can explain the answers that several clients received from one
// mailbox.
//
// A mailbox holds the events and bundles of one recipient. Clients send, peek and dequeue, some of them concurrently. A
// [Recorder] records the beginning, the end and the answer of each operation. [History.Check] searches for an order of the
// operations in which each operation takes effect at one moment between its beginning and its end, and in which a correct
// hub returns the recorded answers. This property is linearizability. The package porcupine does the search.
//
// # The contract of one mailbox
//
//   - Events wait in the order of their Sends. The events of one Send become visible at
//     the same moment, also in different cabinets. An id that was sent before is not a
//     new event: with the same content it is a duplicate, with different content it is a
//     conflict (H1, H2, H5).
//   - A bundle takes events from the front of one cabinet, up to the limits of the rules of
//     bundling (H3). It may take fewer events for reasons that clients do not see: the
//     capacity of drawers, or a node that has not read the newest events yet.
//   - A bundle begins with the first waiting event of the requested groups (H4).
//   - Each group has at most one open bundle, and Peek returns it again (H6). A Peek of
//     several groups returns the bundle that has been open longest.
//   - Dequeue removes the events of the open bundle, once. It finds no bundle for any
//     other id (H7).
//
// A Peek may miss events that are saved during the Peek, and a Peek of several groups may miss a bundle that is opened
// concurrently in one group. So a Peek without a bundle proves two facts: no bundle was open, and no event waited whose
// Send had ended when the Peek began. [Options] weaken this further.
//
// # Operations without an answer
//
// An operation whose answer was lost may have taken effect at any later time, or never. If a Send or Dequeue takes
// effect after all other operations, this is equivalent to never. A Peek without an answer proves nothing. The bundle
// that the Peek may have opened appears in a later Peek, and must fit the request of either Peek. Clients dequeue only
// ids that a Peek returned to them, or ids that no bundle has.
//
// # Cost
//
// The search is exponential in the worst case. Histories of up to 60 operations of up to 4 clients usually take less
// than a millisecond. The search is limited by a number of steps, not by a clock, so a history has the same verdict
// on every machine, and inside a testing/synctest bubble. A search that reaches its limit is inconclusive, and
// callers treat it as a failure.
package history
