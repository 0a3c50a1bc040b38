// Package repository holds the ports of the hub: what its rules ask of storage,
// in the words of the rules.
//
//   - [DataAvailable] keeps events in order until they are acknowledged.
//   - [Bundles] keeps at most one open bundle for each recipient and group.
//   - [Answers] keeps the outcome of asking a domain for the content of a bundle.
//   - [Survey] keeps a line for each mailbox, for operators who list them.
//   - [Outbox] keeps the notices that domains have not got yet.
//   - [DeadLetterActions] keeps what operators do to dead letters of queues.
//   - [Content] keeps payloads and bundle bodies, which are too big for the
//     other two.
//
// And of those that are called:
//
//   - [Streams] keeps what was published, once for all receivers.
//   - [Cursors] keeps the progress of each receiver, and what failed.
//   - [Shards] lists the cursors for the nodes that serve them.
//   - [Nodes] keeps which node serves which shard.
//   - [Watches] keeps who is called when a resource changes, and [Changes] the changes that were not
//     published yet.
//   - [Resources] keeps small documents of clients, which can be watched.
//
// [Objects] keeps what stores report about their objects, and the state that follows.
//
// [Exchange] is the content that hub and domains share.
//
// The comment of a method is its contract, and package repositorytest holds
// every implementation to it. All methods are safe for concurrent use and
// return when their context ends. Whatever a comment names, any method may also
// fail with Busy (throttled: pause, then call again), Unavailable (nothing
// happened, the store is out of reach), Uncertain (it may have happened: call
// again with the same arguments, which is always safe) or Damaged.
//
// Implementations retry by themselves what is safe to retry, within a bounded
// budget; a caller that gets an error may try again or give up, and loses
// nothing either way.
package repository
