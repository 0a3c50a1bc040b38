// Package cosmos stores events and bundles in Azure Cosmos DB, or in any service with
// the same API that azcosmos can use.
//
// Cosmos changes several documents atomically only within one logical partition, and reading a full
// bundle from one partition would take too long. So the events of a cabinet, which have the same
// recipient, origin and content type, are spread over drawers of up to 10,000 events each. A drawer
// is one document with its count, in the partition of its cabinet, and a partition with its pages.
// The decisions about a recipient are conditional writes of a few documents: its head records which
// events were received, and a gate for each group records which events were acknowledged. Pages and
// notices are written once. Entries, filters and the positions of drawers are hints: a hint makes a
// later read cheaper, and a wrong hint costs a repair.
//
// # Documents
//
// A box is a partition, with its key on top. An arrow leads from a document to the documents
// that it refers to.
//
//	catalog                             cabinet
//	+-recipient---------+  last drawer  +-recipient|origin|contentType---+
//	| head   filter     |-------------->| drawer 1   drawer 2   drawer 3 |
//	+-------------------+          +--->|                                |
//	+-recipient|origin--+  hint    |    +----|----------|----------|-----+
//	| entry  entry      |----------+         v          v          v
//	+-------------------+                 +-drawer-+ +-drawer-+ +-drawer-+
//	bundles                               | page   | | page   | | page   |
//	+-recipient---------+  up to 6 ranges | page   | | filter | |        |
//	| bundle  bundle    |---------------->| filter | |        | |        |
//	|   ^               |                 +---|----+ +--------+ +--------+
//	|   | open          |                     v
//	| gate  gate        |                 content store
//	| notice  record    |                 payloads/<drawer>/<slot>-<intent>, or
//	|                   |                 payloads/<drawer>/<random id> after a small Save
//	+-------------------+
//
//	head    numbers reserved and visible; the intent of the Save in flight; for each
//	        cabinet its last drawer, the fill of that drawer, its retention, its front (an
//	        event that was saved while no other event waited), and its tail (the newest
//	        events, which are not in a page yet)
//	gate    the open bundle; for each cabinet the position after the last acknowledged
//	        event; the subscriptions that are notified of a Dequeue. One for each group
//	drawer  ordinal, count, sealed or not; and a hint: the number of acknowledged slots
//	page    consecutive events of one Save or of a tail, written once
//	filter  hint: the ids that a drawer or a block of drawers may hold, beside the drawers;
//	        filters of older versions are beside the pages. The filter of a recipient,
//	        beside the head, holds the ids of the small drawers that are being filled
//	entry   hint: a drawer with unacknowledged events, and the first of their numbers
//	bundle  the locations of its events, its state, and the content from its domain
//	notice  a notification that must be delivered: to a domain or to the subscribers of the
//	        recipient, that a bundle was dequeued; or to the watches of a bundle, that it
//	        was dequeued or removed
//	record  an operator's order, and the reason for it
//
// The container cabinet has the drawers and pages of all cabinets. Some members keep the names of older
// versions: operation is the id of the last write, trouble counts the failures of a domain to produce
// content, and intent in a page is the id of the Save or the flush that wrote the page.
//
// Two documents of the catalog belong to no recipient: one has the group of each origin, the other
// the start of the last sweep. Package level also stores the level of the store in the catalog, and
// package survey stores its lines of all mailboxes in the container cabinet. [Containers] lists the
// containers with their partition keys and index paths; package client provisions and checks them.
//
// # States of a Save
//
// A Save becomes visible in one write, the commit of its head. Until then it is an intent,
// which names the numbers, drawers and slots that it uses. Any writer can roll it back.
//
//	               reserve     insert      count         point         commit
//	read head --> (intent) --> (pages) --> (drawers) --> (entries) --> visible
//	    ^            |            |            |             |
//	    |            +------------+-----+------+-------------+
//	    |                               |  crash, or the lease has passed
//	    |                               v
//	    +----- clear <----- seal <--- claim
//	           head         drawers   head
//
//	read     complete the index of received ids up to the head; drop duplicates
//	reserve  store the payloads, then replace the head: the intent
//	insert   create the pages
//	count    raise the counts of drawers, or create them
//	point    create entries for new drawers, concurrently with the counts. For other drawers
//	         in which no event waited, the commit stores fronts, or entries are raised
//	commit   replace the head: all events are visible, together. Under load the same
//	         write reserves for the Saves that are queued
//	claim    mark the intent as aborted: then its owner's commit is refused
//	seal     seal its drawers with their slots from before: then its owner's counts are
//	         refused
//	clear    remove the intent; its cabinets continue in new drawers, so no slot, ordinal
//	         or number is used twice
//
// The lease prevents writers from rolling each other back endlessly. Correctness does not depend on
// the lease.
//
// A Save whose events fit into the tails of their cabinets is small: it is one replacement of a head
// without an intent. A tail without enough room is flushed: a writer creates its page and raises the
// count of its drawer, and the next write of the head records both. The events of a flush are already
// visible, so a flush needs no intent, and any writer may repeat it. Before an intent is reserved, the
// tails of its cabinets are flushed. See save_small.go and flush.go.
//
// # Lost writes
//
// After a failover or a restored backup, a head may have lost events that its gate has passed.
// Before its first Save to a group, a writer reads the gate together with the head, compares the
// two, and raises the head above the gate. Before its first Save to a cabinet, it queries for drawers
// that are missing in the head, and raises the head above these drawers, so that no ordinal or slot is
// assigned twice and their events are delivered. See save_raise.go and save_ahead.go.
//
// A lost page stops only its cabinet, until an operator abandons it. See lost.go and abandon.go.
//
// # Crashes
//
// A process may stop between any two requests. A comment at each write describes the state
// after a crash, and its repair: Save and rollback in save*.go, Peek in
// peek*.go, Dequeue in dequeue.go, content and notices in answers.go, outbox.go and
// dequeue_requests.go, the sweep in retention_sweep.go, retention_watched.go and cabinet_removal.go, operators
// in admin.go.
//
// Every conditional write has a write id. After a 404, 409 or 412 the document is read back: if it has
// the id, an earlier attempt of the write was applied. When the retries of a call are used up and an
// outcome is unknown, the call fails with Uncertain, and it is safe to repeat the call.
//
// Each mutant in ../bench/simulate/mutants omits one rule of the protocols, and makes a test fail.
// ../bench/simulate/GUARANTEES.md lists the promises and the tests of each.
//
// # What a reader may trust
//
// Plain reads may be stale, independently in each partition. A reader that holds a head trusts
//
//   - the drawer that the head names, up to the fill that the head states. The slots in the tail are
//     read from the head, the slots below from pages. The drawer may have no document yet,
//   - a drawer with a smaller ordinal once it is sealed. If it is not sealed, the reader seals
//     it: that write acts on the current document and returns it.
//
// The reader does not trust the count of another drawer, which may belong to a Save that will be
// rolled back, and ignores drawers above the head's ordinal. A missing ordinal or slot is a stale
// read, never the end of the data.
//
// # Formats and upgrades
//
// Nodes of two versions may work on one store. A version that only adds members to objects changes
// no format: older nodes retain unknown members. If older nodes must not write while a new version
// runs, the new version raises the Format of a [client.DocumentKind]; older nodes then report the
// mailbox and do not serve it. The new version writes the new format once the store has a level that
// all nodes know; see package level. The rules are in document_kinds.go.
//
// # What a Save costs
//
// A Save checks whether its ids were received before, in any cabinet: an id that is sent again with
// another content type is a conflict, not another event. After earlier Saves, a node has the ids of
// a recipient in memory, and the next Save is warm. A Save on a node without these ids is cold, and
// costs up to three times the mean cost of a warm Save, flushes of tails included:
//
//   - with any number of events in one or two cabinets, by the filters of drawers and blocks,
//   - with up to 1,000 cabinets, by the filter of the recipient; see recipient_filter.go.
//
// A cold Save costs more, two or three requests and about 14 RU for each cabinet, where the filter of
// the recipient does not help. These are cabinets that have several drawers (more than 10,000 events,
// or a Save that was rolled back within the retention), and cabinets whose drawers do not fit into the
// filter (5,000 events in total, or with more than 128 cabinets 40 for each). Each cabinet is a
// partition, so this is the minimum while the filter of the recipient is one document. With 30,000
// events the filter would have 165 KB, which cost 25 RU to read and 126 to replace. A larger filter
// would have to be divided by hash, like the filters of blocks, with a separate part for the newest
// events, so that a change of one cabinet does not replace all parts.
//
// A cold Save to a cabinet with three full drawers whose filters are not merged yet costs up to 3.3
// times the mean, in the pessimistic profile: each filter has 55 KB, and costs 4 RU to read.
//
// A cold Save to many cabinets also queries each cabinet for drawers ahead of the head. One query for
// all cabinets would go to every physical partition.
//
// A search for an event makes the same reads as a cold Save, and writes no filters; see
// find_event.go.
//
// # Departures
//
// These decisions differ from the obvious design; a comment at each gives the reason:
//
//   - A filter takes 33 bits for each event rather than 8, and is not one of the usual kinds, so
//     that filters can be merged and divided; see fingerprintBits.
//   - Counting is a patch with a condition on count and seal rather than on the etag; see
//     countUp.
//   - A waiting writer marks the head as wanted, so that a busy node yields; see
//     head.markWanted. The lease doubles with every rollback; see lease.
//   - Payloads are stored before the intent; see reserve.
//   - Events are retained up to a quarter longer than the retention; see milestonesPerGrace.
//   - A recipient has up to 1,000 cabinets at a time; see maxCabinets and cabinet_removal.go.
package cosmos
