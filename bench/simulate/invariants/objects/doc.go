// Package objects checks every commit to the container objects against the invariants of the object ledger.
//
// It uses the layout of documents that package cosmos/objects describes, and shares no code with that package. It has
// its own order and fold of rows, so that the two packages do not share a mistake. The rules have the names of the
// ledger's design:
//
//	L1  a stored row stays until it is forgotten, and the facts of its event never change
//	L2  no two rows of an object have the same identity
//	L3  the current row is the result of the fold of all rows. Among the versions whose newest row is
//	    Created or a delete marker, the fold selects the highest newest row. If that row is a delete
//	    marker, the object has no current row
//	L4  each row in the object is above its floor, and no spilled row is; the floor never decreases;
//	    each version with spilled rows has a copy of the newest of them
//	L5  events and duplicates of an object are the sums over its rows; each change of an object is one
//	    write with a new id, and the rows that the write has stored have that id. A write whose reply was
//	    lost may be repeated with its id if the object no longer contains the id, and then only counts
//	    duplicates
//	L6  numbers of generated positions are dense and never assigned twice; a generated position is
//	    after the highest row that anchors it and happened before it, and not after a row that happened later
//	L7  a row is removed only if it may be forgotten: its time is known and old enough, and it is not the
//	    newest row of a version that exists. The object records up to which row and time it has forgotten
//	    rows, and these limits never decrease; an event below them never has a row again
//	L8  a bucket has at most one running crawl, and a document that names it; each new lease has a different
//	    owner and the next number; an ended job never changes; the cursor of a crawl never moves
//	    back; each row of a crawl refers to a job for the bucket of the row
//	L10 attributes and ingest id of a row change only as a requested patch says, one row per commit
//	batch  a spilled row or a copy changes only in the same commit as its object
//	P14    a watched object has one stored change for each change of its current row or of the facts of
//	       that row, in the same commit; a mark is never removed
//	shard  the number of shards of a bucket never changes; an object is in the shard of its key, and
//	    its id is derived from its key
//
// An Observer must see every commit, in order. The embedded engine reports each commit after its transaction has
// ended, so concurrent commits may be reported in the wrong order: a test must make one request at a time, as a
// simulation does.
package objects
