// Package watch implements watches: when a resource is updated or deleted, the hub calls the actors
// that watch it. The package also stores the small documents that clients put below /v1/resources.
//
// A watch is a cursor, and its stream is the sequence of the changes of one resource:
//
//	change of a watched resource ─▶ stored change ─▶ stream of the resource ─▶ cursor of each watch
//	           └── one write ──────────┘      Relay            package delivery
//
// The document of a watched resource contains a mark, and each write of the document is conditional.
// So a writer finds the mark, or fails and reads the document again. If the document contains the
// mark, the writer stores the new document and a record of the change in one batch. A resource that
// is not watched causes no additional cost.
//
// The changes of a resource have consecutive versions. A stream accepts each version once: version
// n becomes the entry with number n-1. So if a change is published twice, by two nodes or after a
// crash, the stream contains it once. A watch stores the version that the resource had when it was
// marked, and its cursor begins after this version.
//
// # Steps, and the effects of a crash
//
//	mark     mark the resource as watched. After a crash, changes are published without a watch
//	create   store the watch, with the version of its resource
//	cursor   create the cursor of the watch. After a crash before this step, the watch is listed
//	         but not called. The next read of the watch creates the cursor, and no change is lost
//	change   store the resource and its change, in one batch
//	publish  append the change to the stream. After a crash before this step, the relay of any node
//	         finds the change within a minute
//	remove   remove the published change. After a crash before this step, the change is published
//	         again, and the stream detects a duplicate
//	delete   delete the watch. The owner of its cursor cancels outstanding deliveries, and removes
//	         the cursor
//
// The changes of objects are stored together with the objects; [WithObjects] combines them with the
// changes of all other resources. A watch on an object may name the object by the id of any of its
// rows.
//
// When a watched bundle is dequeued, the hub stores a notice in its outbox instead of a change. The
// notice relay of any node passes the notices to [Relay.Notify], in the order in which the bundles
// were closed. When the retention removes the bundle, a second notice, which reports the deletion, is
// stored in one batch with the removal. It has the next version, and is published after the earlier
// versions of its bundle. Notices of different bundles are published in any order. Only an open
// bundle can be watched.
//
// # Departures from the design
//
//   - A bundle that is not watched expires by its time to live, without a write of the hub. A
//     bundle that is watched when it is closed has no time to live: it is stored until the first
//     sweep after its retention, or forever if the retention is unlimited. If a node of an older
//     version closed the bundle, it has a time to live, and expires without a notification.
//   - The id of a removed bundle may be used again. The versions of the new bundle begin at 1, and
//     the stream drops the versions that it already contains, so watches are not notified of them.
//     Actors should therefore use a new id for each bundle.
//   - The watches of a resource are stored in pages for each shard, so that each node calls a part
//     of the watches. Package delivery describes how a node visits the pages.
//   - A change is removed once it is in the stream of its resource, before all watches have
//     been called: the stream and the cursors store the outstanding work.
package watch
