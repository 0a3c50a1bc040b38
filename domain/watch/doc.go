// Package watch has the use cases of watches: an actor that watches a resource is called when it is
// updated or deleted. It also keeps the small documents that clients put below /v1/resources.
//
// A watch is a cursor, and its stream is the sequence of the changes of one resource:
//
//	change of a watched resource ─▶ stored change ─▶ stream of the resource ─▶ cursor of each watch
//	           └── one write ──────────┘      Relay            package delivery
//
// A resource that is watched says so in its document, and each change of it is conditional: so a
// change sees that it is watched, or fails and looks again. Then one batch has the change and what
// says so. A resource that is not watched pays nothing.
//
// The changes of a resource have consecutive versions, and a stream takes each version once, as the
// entry with the number before it. So a change that is published twice, by two nodes or after a crash,
// is in the stream once. A watch remembers the version at which the resource was when it was marked:
// its cursor begins behind that.
//
// # Steps, and what a crash leaves
//
//	mark     the resource says that it is watched. A crash leaves changes that are published for no
//	         watch
//	create   store the watch, with the version of its resource
//	cursor   create its cursor. A crash before leaves a watch that is listed and not called; the
//	         next read of it creates the cursor, and no change is missing
//	change   the resource and its change, in one batch
//	publish  append the change to the stream. A crash before leaves a change, which the relay of any
//	         node finds within a minute
//	remove   the change that is in the stream. A crash before leaves a change that is a duplicate
//	delete   delete the watch. The owner of its cursor cancels what is outstanding, and retires it
//
// An object of a store has its changes in the store of objects: [WithObjects] joins them with the others. The
// ids of its rows are other names of it.
//
// A bundle leaves a notice in the outbox of the hub instead of a change, when it is dequeued: the
// notice relay of any node brings it to [Relay.Notify], in the order in which bundles were closed. Another notice is
// left when the retention removes the bundle, in one batch with the removal: it is the deletion, with the next version,
// and waits until the versions before are in the stream. It is in no order with the notices of other bundles. Only
// an open bundle can be watched.
//
// # Departures from the design
//
//   - A bundle that is not watched goes at its time to live, by no write of the hub. One that is watched when it is
//     closed has none: a sweep removes it, so it is kept until the first sweep after its retention. While the
//     retention is unlimited, it stays. One that a node of a version without such sweeps has closed goes without a
//     notification.
//   - The id of a bundle that was removed may be used again. The versions of the new bundle begin at 1, so the changes
//     whose versions are in the stream already are not notified: actors should use a new id for each bundle.
//   - Watches of a resource are in pages for each shard, so that all nodes call a part of them. Package
//     delivery says how they are visited.
//   - A change is removed once it is in the stream of its resource, and not when all watches have been
//     called: the stream, and the cursors, know what is left to do.
package watch
