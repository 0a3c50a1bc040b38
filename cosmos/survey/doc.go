// Package survey keeps a line for each mailbox of a store, for operators who list them.
//
// One node at a time surveys: it reads all mailboxes once, and then follows the change feeds of
// their containers, so that a document is read once for each time it changed, and not more often
// than once in a round. What a line says, and which documents belong to it, is for a [Reader].
// This package keeps the lines as bytes that it does not look into.
//
// # Documents
//
// All are in one partition of the container cabinet, whose feed the survey does not follow:
//
//	state      the node that surveys and its beats; the moment of the survey; where its feeds
//	           continue, or its walk; the snapshot and the numbers of the log
//	snapshot   parts of the lines of all mailboxes, written together
//	log        lines that were changed since the snapshot, numbered
//
// A line is 60 to 200 bytes, so a document for each would cost more to write than to read what
// changed. A flush writes all lines that have changed in one or a few documents of the log, in
// one batch with the state. So lines, and the position up to which they were read, are stored
// together or not. When the log is as large as the snapshot, a new snapshot is written beside the
// old one, some parts in each round. One write of the state makes it valid, and the next ones
// remove what it replaces: each line is written twice on average. Nothing expires and nothing is
// left over: a node that begins to survey removes what the state does not name, in batches with the
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
// The feeds do not show all: a failover may lose writes that were surveyed, documents are removed,
// and the repair of a damaged file is no change. So, six hours after the last time, all lines are
// compared with what is stored, by the queries of the walk. A mailbox whose line differs is read
// again as a whole, and so is each one that is damaged, every five minutes. The state has the
// position, and another node continues there. A read may return an old version of a document; one
// that is older than what a feed has returned in the last minute changes no line. Rechecks
// spend up to a tenth of Options.Units, and wait while the feeds have changes left.
//
// # One node at a time
//
// The state names the node that surveys, and each flush or beat raises its number. A node that
// does not see the number move for 60 s, by its own clock, takes the survey over by a conditional
// write, and continues where the state says. A node that ends gives the survey away. Every other
// write is conditional on the state, too, except for parts of a snapshot under a new id: of two
// nodes that believe they survey, one is refused, and stops. Until then they read the same
// documents and lose nothing.
//
// # What it costs
//
// Reading a changed document costs what its size costs, 1 RU up to 1 KB. Storing lines and the
// rounds that find nothing cost a tenth of that at 1,000 changed documents a minute; a
// store that is not used costs about half a request unit a second. All requests together keep to
// Options.Units. If more changes than that allows, the moment of the survey falls behind, until the
// same documents change again before they are read: each is read once. RESULTS.md has figures. A
// mailbox with one cabinet takes 200 bytes of memory, on the node that surveys and on those that
// were asked for its lines.
//
// # What a failure leaves
//
// A crash leaves the state of the last flush. Parts of a snapshot that was not finished are
// removed by the next node. While no node surveys, lists are of the last flush, and state its
// moment; no node exports the metrics. If a document of the survey is missing or damaged, the survey begins
// again with a walk: nothing depends on it.
//
// Lines of writes that the account has lost stay until a recheck. Deleting the document state has the
// next node read all mailboxes again.
package survey
