// Package invariants checks every commit of a hub's store against the invariants that no interleaving and no crash
// may break.
//
// A simulation compares what goes in with what comes out, and finds a fault once it has done harm. An Observer checks
// the documents themselves, at every commit: a number that is assigned twice is found when it is assigned, and the
// error shows the two documents. embedded.Options.Committed calls it.
//
// It knows the documents from the layout that package cosmos documents, and shares no code with that package, so that
// both do not share a mistake. The rules have the names of the hub's design:
//
//	H3  numbers ascend and are never assigned twice
//	H4  each bundle of a group begins with a higher number than those before, unless an
//	    operator has released one of them
//	H5  the watermark never decreases; it moves to the end of the current intent, and
//	    then everything that the intent announced is stored; no bundle reaches above it
//	H6  a group has at most one open bundle, and gate and bundle agree on it; the positions
//	    of a bundle's events never change
//	H7  a gate moves to the end of the bundle that is closed, and back only by a Replay,
//	    which leaves a record; a closed bundle is not opened again otherwise; a bundle
//	    begins at the first event after the gate
//	H8  ordinals and slots are dense and used once; a drawer holds at most its
//	    capacity; a sealed drawer does not grow and is sealed at what was committed
//	H9  a bundle spans at most six drawers
//	notices  the commit that dequeues a bundle creates its notices, and no other does: one
//	    for the domain if the content is produced on request, one for subscribers if the gate
//	    has any, one for watches if the bundle is watched, with the number of the change;
//	    a notice never changes. The commit that removes a watched bundle creates one too, and
//	    no other does; such a bundle has no time to live
//	L9  the content of a bundle changes only while the bundle is open and marked as
//	    deleted; other content removes the mark, and no earlier content returns
//	containers  every document is in a container whose rules are known
//	retention  a floor never decreases and never exceeds what is acknowledged; only
//	    documents below it are removed
//
// Hints (catalog entries, positions, filters) may be wrong and are not checked. Documents below the floor of their
// cabinet are not read any longer and are not checked either: a Save that was rolled back and paused for longer than
// the retention may still write there.
//
// An Observer must see every commit, in order. The embedded engine reports sequential commits in order, but not
// concurrent ones: a test must make one request at a time, as a simulation does.
package invariants
