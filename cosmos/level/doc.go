// Package level stores which formats the nodes of a store may write, and which nodes work
// on it, in one document.
//
// Nodes of two versions work on one store while a deployment is upgraded. Each document
// has a format, and a node leaves a document of a format that it does not know alone
// (see package client): that protects the data. The level of the store protects the service:
// a version that introduces formats begins to write them when the store has its level, and
// the store gets it when all living nodes know it. Until then an operator can go back to the
// version before.
//
// # Levels
//
// A level is a number. A [Table] describes all levels that a version knows; its last one is
// the highest. A store that a version creates has the highest level of that version. A
// store without the document was made by a version before levels, and has level 1.
//
// # The document
//
// It is in the container catalog, in a partition of its own:
//
//	level      formats of this level and of those below may be written
//	announced  the next level, while an upgrade to it has begun; otherwise absent
//	nodes      the nodes that work on the store: version, highest level, beats
//	step       the rewriting of documents that the level needs and that has not ended
//	history    who changed the level, and when
//
// Every write is a patch. It acts on the current document and returns it, so no decision
// depends on a stale read, and members that a version does not know are kept. Each patch that
// changes more than a beat has a new write id, and the write id that its decision is based on
// as a condition.
//
// # States
//
//	          announce               activate                  steps
//	level n -----------> n, n+1 announced ---------> level n+1 -------> level n+1
//	   ^                      |                      with a step
//	   +----------------------+
//	          back
//
//	join      a node adds itself to nodes. It is refused with NewerFormat if the level, or the
//	          one that is announced, is higher than its version knows.
//	beat      every 10 s a node raises its number. The reply shows it the level.
//	announce  if all nodes know the next level. A node that does not, and whose number has not
//	          moved for 40 s by the clock of the observer, is dead, and is removed by a
//	          write that fails if the number has moved. A node that joins meanwhile has
//	          changed the write id, so the announcement is decided again.
//	activate  if the level is announced: only nodes that know it have joined since.
//	back      removes the announcement. Nothing was written in a format of that level.
//	          An active level is never lowered: documents may have its formats.
//
// Two operators who do any of this at the same time, and one who is interrupted, leave one of
// these states, and the command is repeated. A step rewrites documents in small parts; its
// position is stored after each part, and a part may run twice.
//
// A node that was paused for long may have been removed as dead. Its next beat finds that it
// is missing, and it joins again. If the level is higher than it knows by then, that is refused
// and the node ends. What it writes before that has formats that every version can read.
// Documents of a format that it does not know it leaves alone.
//
// # What it leaves to others
//
// Which formats belong to a level, and what reads and writes them. Nodes of versions before
// levels are not in the document: the operator makes sure that no such node is running.
package level
