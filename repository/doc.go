// Package repository has the ports of the hub: what its rules need of storage, in the terms of the
// rules.
//
//   - [DataAvailable] keeps events in order until they are acknowledged.
//   - [Bundles] keeps at most one open bundle for each recipient and group.
//   - [Answers] keeps the outcome of requesting the content of a bundle from its domain.
//   - [Survey] keeps a line for each mailbox, so that operators can list them.
//   - [Outbox] keeps the notices that were not delivered yet.
//   - [DeadLetterActions] keeps the records of operators' orders about dead letters of queues.
//   - [Content] keeps payloads and bundle bodies, which are too large for the other ports.
//
// The ports of the push side, which calls receivers:
//
//   - [Streams] keeps published messages, once for all receivers.
//   - [Cursors] keeps the progress of each receiver, and failed deliveries.
//   - [Shards] lists the cursors for the nodes that serve them.
//   - [Nodes] keeps which node serves each shard.
//   - [Watches] keeps the receivers to call when a resource changes, and [Changes] the changes
//     that were not published yet.
//   - [Resources] keeps small documents of clients, which can be watched.
//
// [Objects] keeps what stores report about their objects, and the resulting state.
//
// [Exchange] is the content that hub and domains share.
//
// The comment of a method is its contract, and package repositorytest tests every implementation by
// it. All methods are safe for concurrent use and return when their context ends. In addition to the
// errors in its comment, any method may fail with Busy (throttled: pause, then call again),
// Unavailable (nothing happened, the store cannot be reached), Uncertain (it may have happened: call
// again with the same arguments, which is always safe) or Damaged.
//
// Implementations retry what is safe to retry, within a limited budget. A caller that gets an error
// may try again or give up; nothing is lost in either case.
package repository
