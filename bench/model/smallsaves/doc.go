// Package smallsaves is a model of the protocol by which package cosmos saves, flushes,
// peeks, dequeues and sweeps, with small Saves whose events stay in the tail of a head.
// It explores every state of small scenarios, breadth first, and prints the shortest
// trace of a violation. `make model` runs it.
//
// # What is modelled
//
// Documents: the head, catalog entries, drawers, pages, the gate and the bundles, each
// in its logical partition together with its older versions. A plain read may return
// an older version, independently in each partition; a conditional write acts on the
// current one.
//
// Processes: two writers and two actors, in steps of one request each. Between two steps
// any other process may take any number of steps. A writer saves batches of events,
// small or large, flushes, or sweeps. It may roll back an intent at any time, because the
// model has no lease. An actor peeks and dequeues.
//
// Faults: a process crashes and starts again, a write is applied and its reply is lost,
// a read is stale. Each has a budget in a scenario.
//
// Sizes: two cabinets in one or two domains, drawers of one to three events, tails of at
// most two, bundles of two.
//
// # What is checked
//
// In every state: an event that was committed stays below the count of a drawer or in
// the tail of its head, pages have no hole below a count, the payload of a saved event
// is there. At every step: numbers become visible in ascending order and once, a
// bundle continues where the previous bundle ended, a Peek starts at the smallest visible
// number, repeats no bundle that was dequeued and reads an open bundle again with the same
// events. From every distinct state of the documents: an actor drains exactly the
// committed events in order, and does so again after a new writer has saved every event
// again.
//
// # Scenarios and mutations
//
// [Groups] returns the scenarios, which must have no violation. Each scenario of
// [Mutations] leaves out one rule of the protocol, and the exploration must find a
// violation. A scenario that exceeds its bounds is reported as not exhausted.
//
// # What is not modelled
//
// Weights, contents, the limit of all tails together, marks of waiting writers,
// retention beyond the closing of the last drawer, more than two writers or actors,
// more than one group. A batch of a writer has one operation id, where the code has one for each
// attempt.
package smallsaves
