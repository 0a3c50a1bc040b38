// Package watch has the use cases of watches: an actor that watches a resource is called when
// the resource is updated or deleted. It also keeps the small documents that clients put below
// /v1/resources.
//
// A watch is a cursor, and its stream is the sequence of the changes of one resource:
//
//	change of a watched resource ─▶ stored change ─▶ stream of the resource ─▶ cursor of each watch
//	           └── one write ──────────┘      Relay            package delivery
//
// A watched resource has a mark in its document, and each write of the document is conditional.
// So a writer sees the mark, or fails and reads again. If there is a mark, the writer stores
// the new document and a record of the change in one batch. A resource that is not watched
// costs nothing extra.
//
// The changes of a resource have consecutive versions, and a stream takes each version once, as
// the entry with the number before it. So a change that is published twice, by two nodes or
// after a crash, is in the stream once. A watch remembers the version that the resource had
// when it was marked: its cursor begins after that.
//
// # Steps, and the effects of a crash
//
//	mark     mark the resource as watched. After a crash, changes without a watch are published
//	create   store the watch, with the version of its resource
//	cursor   create its cursor. After a crash before this, the watch is listed but not called. The
//	         next read of the watch creates the cursor, and no change is lost
//	change   store the resource and its change, in one batch
//	publish  append the change to the stream. After a crash before this, the relay of any node
//	         finds the change within a minute
//	remove   remove the published change. After a crash before this, it is published again, and is
//	         a duplicate
//	delete   delete the watch. The owner of its cursor cancels outstanding deliveries, and removes
//	         the cursor
//
// An object of a store has its changes in the store of objects: [WithObjects] joins them with the others. The
// ids of its rows are other names of it.
//
// A bundle leaves a notice in the outbox of the hub instead of a change, when it is dequeued:
// the notice relay of any node brings it to [Relay.Notify], in the order in which bundles were
// closed. When the retention removes the bundle, another notice is stored in one batch with the
// removal. It reports the deletion, has the next version, and waits until the earlier versions
// are in the stream. It is not ordered with the notices of other bundles. Only an open bundle
// can be watched.
//
// # Departures from the design
//
//   - A bundle that is not watched expires by its time to live, without a write of the hub. A
//     bundle that is watched when it is closed has no time to live: it is kept until the first
//     sweep after its retention. If the retention is unlimited, it stays. A bundle that was
//     closed by a node of a version without such sweeps expires without a notification.
//   - The id of a bundle that was removed may be used again. The versions of the new bundle
//     begin at 1, and there is no notification for versions that are in the stream already. So
//     actors should use a new id for each bundle.
//   - Watches of a resource are in pages for each shard, so that all nodes call a part of them. Package
//     delivery says how they are visited.
//   - A change is removed once it is in the stream of its resource, before all watches have
//     been called: the stream and the cursors have the outstanding work.
package watch
