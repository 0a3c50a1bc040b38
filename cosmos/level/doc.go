// Package level stores which formats the nodes of a store may write, and which nodes work
// on it, in one document.
//
// Nodes of two versions work on one store while a deployment is upgraded. Each document has a
// format, and a node leaves documents of an unknown format alone (see package client): that protects
// the data. The level of the store protects the service: a version that introduces formats begins to
// write them when the store has its level, and the store gets it when all living nodes know it.
// Until then an operator can return to the previous version.
//
// # Levels
//
// A level is a number. A [Table] describes all levels that a version knows; its last one is the
// highest. A store that a version creates has the highest level of that version. A store without the
// document was created by a version before levels, and has level 1.
//
// # The document
//
// It is in the container catalog, in a partition of its own:
//
//	level      formats of this level and of those below may be written
//	announced  the next level, while an upgrade to it has begun; otherwise absent
//	nodes      the nodes that work on the store: version, highest level, beats
//	step       the unfinished step of the level, which rewrites documents
//	history    who changed the level, and when
//
// Every write is a patch. It acts on the current document and returns it, so no decision depends on
// a stale read, and members that a version does not know are kept. Each patch that changes more than
// a beat has a new write id, and is conditional on the write id on which its decision is based.
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
//	          announced one, is higher than its version knows.
//	beat      every 10 s a node raises its number. The reply shows it the level.
//	announce  if all nodes know the next level. A node that does not, and whose number has not
//	          moved for 40 s by the clock of the observer, is dead, and is removed by a
//	          write that fails if the number has moved. A node that joins meanwhile has
//	          changed the write id, so the announcement is decided again.
//	activate  if the level is announced: only nodes that know it have joined since.
//	back      removes the announcement. Nothing was written in a format of that level.
//	          An active level is never lowered: documents may have its formats.
//
// If two operators run commands at the same time, or a command is interrupted, the store is in one
// of these states, and the command can be repeated. A step rewrites documents in small parts; its
// position is stored after each part, and a part may run twice.
//
// A node that was paused for long may have been removed as dead. Its next beat finds that, and the
// node joins again. If the level is by then higher than it knows, it is refused and ends. Everything
// that it writes before has formats that every version can read, and it does not change documents of
// unknown formats.
//
// # What it leaves to others
//
// Other packages decide which formats belong to a level, and read and write them. Nodes of versions
// before levels are not in the document: the operator ensures that no such node is running.
package level
