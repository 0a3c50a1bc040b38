// Package objects holds every commit to the container objects to the invariants of the ledger of
// objects.
//
// What it knows of the documents it knows from the layout that package cosmos/objects documents,
// and not from its code. It has an order of rows and a fold of its own, so that the two do not share
// a mistake. The rules are named as in the design of the ledger:
//
//	L1  a row that was stored stays until it is forgotten, and what its event said never changes
//	L2  no two rows of an object have the same identity
//	L3  the current row is that of the fold of all rows: of the versions whose newest row is Created
//	    or a delete marker, the one with the highest row; none if that is a marker
//	L4  each row in the object is above its floor, and no spilled one is; the floor never sinks;
//	    each version with spilled rows has a copy of the newest one of these
//	L5  events and duplicates of an object are the sums of its rows; each change of an object is one
//	    write with an id that it never had, and the rows that the write has stored have that id
//	L6  numbers of generated places are dense and never given out twice; such a place is behind the
//	    highest row that anchors it and happened before, and not behind one that happened later
//	L7  a row goes only if it may be forgotten: its time is known and old enough, and it is not the newest
//	    one of a version that exists. The object remembers what it has forgotten, and that only grows;
//	    an event that was forgotten never has a row again, and none that is as old as these has
//	L8  a bucket has one crawl that runs, and the document that says so; each lease is another owner's, with
//	    the next number; a job that has ended never changes, and the cursor of a crawl never moves
//	    back; each row of a crawl is of a job for its bucket
//	L10 attributes and ingest id of a row change only as one patch says that was asked for, and of one
//	    row at a time
//	batch  a spilled row and a copy change only together with their object
//	P14    a watched object has one stored change for each change of its current row or of the facts of that,
//	       in the same commit; a mark is never removed
//	shard  the number of shards of a bucket never changes; an object is in the shard of its key, and
//	    its id is made of its key
//
// An Observer has to see every commit, in order. The embedded engine reports each commit after its
// transaction has ended, so two commits that are made at the same time may be reported in the wrong
// order: a test has to make one request at a time, as a simulation does.
package objects
