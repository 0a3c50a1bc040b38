// Package repository defines the ports of the hub: the interfaces through which the rules use storage.
//
//   - [DataAvailable] stores events in order until they are acknowledged.
//   - [Bundles] stores at most one open bundle for each recipient and group.
//   - [Answers] stores the outcome of content requests to domains.
//   - [Survey] stores a line for each mailbox, so that operators can list mailboxes.
//   - [Outbox] stores the notices that were not delivered yet.
//   - [DeadLetterActions] stores the records of operators' actions on dead letters of queues.
//   - [Content] stores payloads and bundle bodies, which are too large for the other ports.
//
// The ports of the push side, which calls receivers:
//
//   - [Streams] stores published messages, once for all receivers.
//   - [Cursors] stores the progress of each receiver, and failed deliveries.
//   - [Shards] lists the cursors for the nodes that serve them.
//   - [Nodes] stores the assignment of shards to nodes.
//   - [Watches] stores the receivers to call when a resource changes.
//   - [Changes] stores the changes of watched resources that were not published yet.
//   - [Resources] stores small documents of clients, which can be watched.
//
// [Objects] stores the events that stores report about their objects, and the resulting state.
//
// [Exchange] is the storage that the hub and the domains share.
//
// The comment of a method is its contract; package repositorytest tests every implementation against
// these contracts. All methods are safe for concurrent use and return when their context ends. In
// addition to the errors in its comment, any method may fail with one of these kinds:
//
//   - Busy: the store throttles. The caller pauses and calls again.
//   - Unavailable: the store cannot be reached. The call had no effect.
//   - Uncertain: the call may have had its effect. Calling again with the same arguments is always
//     safe.
//   - Damaged: stored data cannot be read, or contradicts itself.
//
// Implementations retry requests that are safe to retry, within a limited budget. A caller that
// receives an error may call again or give up; nothing is lost in either case.
package repository
