// Package survey keeps a line for each mailbox of a store, for operators who list them.
//
// One node at a time surveys: it reads all mailboxes once, and then follows the change feeds of
// their containers, so that a document is read once for each time it changed, and not more often
// than once in a round. A [Reader] knows the content of a line, and the documents that belong to it.
// This package stores lines as bytes and does not interpret them.
//
// # Documents
//
// All are in one partition of the container cabinet, whose feed the survey does not follow:
//
//	state      the node that surveys and its beats; the time of the survey; positions of its feeds,
//	           or of its walk; the snapshot and the numbers of the log
//	snapshot   parts of the lines of all mailboxes, written together
//	log        lines that were changed since the snapshot, numbered
//
// A line is 60 to 200 bytes, so to write a document for each would cost more than to read the
// changes. A flush writes all lines that have changed in one or a few documents of the log, in one
// batch with the state. So lines, and the position up to which they were read, are stored together
// or not. When the log is as large as the snapshot, a new snapshot is written beside the old one,
// some parts in each round. One write of the state makes it valid, and the next ones remove what it
// replaces: each line is written twice on average. No document expires, and none is left over: a
// node that begins to survey removes the documents that the state does not name, in batches with the
// state.
//
// # States
//
//	none ---> walk ---------> follow
//	           ^                 |
//	           +-----------------+  a feed cannot continue
//
// The walk reads all mailboxes by queries. Before it begins, the state notes the time of the
// account, and the feeds are read from that time less a minute. So a change during the walk is
// read later, whether the walk has seen it or not.
//
// # Rechecks
//
// The feeds do not show everything: a failover may lose writes that were surveyed, documents are
// removed, and the repair of a damaged file is not a change. So every six hours all lines are
// compared with the stored documents, by the queries of the walk. A mailbox whose line differs is
// read again as a whole. Each damaged mailbox is read again every five minutes. The state has the
// position, and another node continues there. A read may return an old version of a document; one
// that is older than what a feed has returned in the last minute changes no line. Rechecks spend up
// to a tenth of Options.Units, and wait while the feeds have changes left.
//
// # One node at a time
//
// The state names the node that surveys, and each flush or beat raises its number. A node that does
// not see the number change for 60 s, by its own clock, takes over the survey by a conditional
// write, and continues at the position in the state. A node that ends gives up the survey. Every
// other write is conditional on the state, too, except for parts of a snapshot under a new id: of
// two nodes that survey at the same time, one is refused, and stops. Until then they read the same
// documents and lose nothing.
//
// # What it costs
//
// The cost of reading a changed document depends on its size: 1 RU up to 1 KB. Storing lines and the
// rounds that find nothing cost a tenth of that at 1,000 changed documents a minute; a store that is
// not used costs about half a request unit a second. Options.Units limits all requests together. If
// more documents change than it permits to read, the time of the survey falls behind. A document
// that changes again before it is read is read only once. RESULTS.md has figures. A mailbox with one
// cabinet takes 200 bytes of memory, on the node that surveys and on nodes that have listed
// mailboxes.
//
// # What a failure leaves
//
// A crash leaves the state of the last flush. Parts of a snapshot that was not finished are removed
// by the next node. While no node surveys, lists show the last flush and its time; no node exports
// the metrics. If a document of the survey is missing or damaged, the survey begins again with a
// walk: nothing else depends on it.
//
// Lines of writes that the account has lost stay until a recheck. If the document state is deleted,
// the next node reads all mailboxes again.
package survey
