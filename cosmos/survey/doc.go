// Package survey stores a line for each mailbox of a store, for operators who list mailboxes.
//
// One node at a time surveys: it reads all mailboxes once, and then follows the change feeds of their
// containers. So a document is read again only after it has changed, and at most once in a round. A
// [Reader] defines the content of a line and the documents from which a line is derived. This package
// stores lines as bytes and does not interpret them.
//
// # Documents
//
// All documents are in one partition of the container cabinet, whose feed the survey does not follow:
//
//	state      the node that surveys and its beats; the time of the survey, before which all changes
//	           were read; positions of the feeds or of the walk; the snapshot and the numbers of the log
//	snapshot   parts of the lines of all mailboxes, written together
//	log        lines that were changed since the snapshot, numbered
//
// A line has 60 to 200 bytes, so a document for each line would cost more to write than the changes cost
// to read. A flush writes all changed lines to one or a few documents of the log, in one batch with the
// state. So lines are stored together with the position up to which they were read. When the log is as
// large as the snapshot, a new snapshot is written beside the old snapshot, some parts in each round.
// One write of the state makes the new snapshot valid, and the next writes remove the replaced
// documents. So each line is written twice on average. No document expires. A node that begins to survey
// removes the documents that the state does not name, in batches with the state.
//
// # States
//
//	none ---> walk ---------> follow
//	           ^                 |
//	           +-----------------+  a feed cannot continue
//
// The walk reads all mailboxes by queries. Before the walk, the state records the time of the account,
// and later the feeds are read from a minute before this time. So every change during the walk is read
// after it, even if the walk has also read it.
//
// # Rechecks
//
// The feeds do not contain every change of a line: a failover may lose writes that were surveyed,
// deletions of documents are not in a feed, and the repair of a damaged file is not a change. So every
// six hours, all lines are compared with the stored documents, by the queries of the walk. If a line
// differs, all documents of its mailbox are read again. Each damaged mailbox is read again every five
// minutes. The state contains the position of the recheck, so another node can continue the recheck. A
// read may return an old version of a document. A version changes no line if it is older than a version
// that a feed returned in the last minute. Rechecks spend up to a tenth of Options.Units, and wait while
// the feeds have more changes.
//
// # One node at a time
//
// The state names the node that surveys, and each flush or beat increments a number in it. If the number
// is unchanged for 60 s by the clock of another node, this node takes over the survey by a conditional
// write, and continues at the position in the state. A node that stops releases the survey. All other
// writes are also conditional on the state, except for parts of a snapshot, which have a new id. If two
// nodes survey at the same time, the next write of one of them is refused, and this node stops. Until
// then both nodes read the same documents and lose nothing.
//
// # What it costs
//
// The cost of reading a changed document depends on its size: 1 RU up to 1 KB. At 1,000 changed documents
// a minute, flushes and empty rounds add a tenth to this cost. For an unused store, the survey costs about
// half a request unit a second. Options.Units limits all requests together. If more documents change than
// the limit permits to read, the time of the survey falls behind. A document that changes again before
// the survey reads it is read only once. RESULTS.md has figures. A mailbox with one cabinet takes 200
// bytes of memory, on the node that surveys and on nodes that have listed mailboxes.
//
// # What a failure leaves
//
// A crash leaves the state of the last flush. The next node removes the parts of an unfinished snapshot.
// While no node surveys, lists contain the lines of the last flush, with its time, and no node exports
// the metrics. If a document of the survey is missing or damaged, the survey begins again with a walk. No
// other package depends on these documents.
//
// If the account loses writes, lines that contain these writes remain until a recheck. If the document
// state is deleted, the next node reads all mailboxes again.
package survey
