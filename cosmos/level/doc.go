// Package level stores the level of a store and its nodes in one document. The level determines which
// formats the nodes may write.
//
// Nodes of two versions share a store while a deployment is upgraded. Formats protect the data: a node
// does not change a document of an unknown format (see package client). The level of the store protects
// the service: a version that introduces formats writes them only after the store has reached the level
// of these formats. An operator can raise the level when all living nodes know the next level. Until
// then, the operator can return to the previous version.
//
// # Levels
//
// A level is a number. A [Table] describes all levels that a version knows, in ascending order. A new
// store has the highest level of the version that creates it. A used store without the document was
// created by a version before levels, and has level 1.
//
// # The document
//
// The document is in the container catalog, in a separate partition:
//
//	level      formats of this level and of lower levels may be written
//	announced  the next level, while an upgrade to it has begun; otherwise absent
//	nodes      the nodes that work on the store: version, highest level, beats
//	step       the unfinished step of the level, which rewrites documents
//	history    changes of the level: operator, version and time
//
// Every write is a patch. A patch acts on the current document and returns it, so no decision depends on
// a stale read. A patch also preserves members that the version does not know. Each patch that changes
// more than a beat stores a new write id, on condition that the document still has the write id that the
// decision is based on.
//
// # States
//
//	          announce               activate                  steps
//	level n -----------> n, n+1 announced ---------> level n+1 -------> level n+1
//	   ^                      |                      with a step
//	   +----------------------+
//	          back
//
//	join      a node adds itself to nodes. It is refused with NewerFormat if the current or the
//	          announced level is higher than its version knows.
//	beat      every 10 s a node increments its number of beats. The reply contains the level.
//	announce  allowed if all nodes know the next level. An older node whose number of beats is
//	          unchanged for 40 s, by the clock of the observer, is dead. It is removed by a
//	          write that fails if the number has changed. A node that joins in between
//	          changes the write id, so the announcement is decided again.
//	activate  allowed once the level is announced: since then, only nodes that know it can join.
//	back      removes the announcement. No document has a format of the announced level yet.
//	          An active level is never lowered: documents may have its formats.
//
// If two operators run commands at the same time, or a command is interrupted, the store is in one
// of these states, and the command can be repeated. A step rewrites documents in small parts; its
// position is stored after each part, and a part may run twice.
//
// A node that was paused for a long time may have been removed as dead. Its next beat detects the
// removal, and the node joins again. If the level is higher than the node knows, it is refused and ends.
// All documents that it wrote before have formats that every version can read, and it does not change
// documents of unknown formats.
//
// # Limits
//
// Other packages decide which formats belong to a level, and read and write them. Nodes of versions
// before levels are not in the document: the operator must ensure that they do not run.
package level
