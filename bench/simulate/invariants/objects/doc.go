// Package objects checks every commit to the container objects against the invariants of the object ledger.
//
// It knows the documents from the layout that package cosmos/objects documents, and shares no code with that package.
// It has its own order and fold of rows, so that both do not share a mistake. The rules have the names of the
// ledger's design:
//
//	L1  a stored row stays until it is forgotten, and the facts of its event never change
//	L2  no two rows of an object have the same identity
//	L3  the current row is that of the fold of all rows: of the versions whose newest row is Created
//	    or a delete marker, the one with the highest row; none if that is a marker
//	L4  each row in the object is above its floor, and no spilled row is; the floor never decreases;
//	    each version with spilled rows has a copy of the newest of them
//	L5  events and duplicates of an object are the sums of its rows; each change of an object is one
//	    write with a new id, and the rows that the write has stored have that id
//	L6  numbers of generated positions are dense and never assigned twice; such a position is behind the
//	    highest row that anchors it and happened before, and not behind one that happened later
//	L7  a row is removed only if it may be forgotten: its time is known and old enough, and it is not the
//	    newest row of a version that exists. The object remembers what it has forgotten, and that only grows;
//	    a forgotten event never gets a row again, nor does an event as old as these
//	L8  a bucket has at most one running crawl, and the document that says so; each lease is another owner's,
//	    with the next number; an ended job never changes, and the cursor of a crawl never moves
//	    back; each row of a crawl is of a job for its bucket
//	L10 attributes and ingest id of a row change only as one requested patch says, one row at a time
//	batch  a spilled row and a copy change only together with their object
//	P14    a watched object has one stored change for each change of its current row or of the facts of
//	       that row, in the same commit; a mark is never removed
//	shard  the number of shards of a bucket never changes; an object is in the shard of its key, and
//	    its id is made of its key
//
// An Observer must see every commit, in order. The embedded engine reports each commit after its transaction has
// ended, so concurrent commits may be reported in the wrong order: a test must make one request at a time, as a
// simulation does.
package objects
