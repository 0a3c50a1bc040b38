// Package invariants holds every commit of a hub's store to the invariants that no
// interleaving and no crash may break.
//
// A simulation compares what goes in with what comes out, and that finds a fault
// once it has done harm. An Observer looks at the documents themselves, at every
// commit: a number given out twice is found when it is given out, and the error
// shows the two documents. It is told by embedded.Options.Committed.
//
// What it knows of the documents, their names and fields, it knows from the layout
// that package cosmos documents and not from its code, so that the two do not share
// a mistake. The rules are named as in the design of the hub:
//
//	H3  numbers ascend and are never given out twice
//	H4  the bundles of a group begin with ever higher numbers, but for what an operator
//	    has released: whoever begins with a lower one has been passed over before
//	H5  the watermark never sinks; it moves to the end of the intent that stood, and
//	    then everything that the intent announced is there; nothing above it is in a bundle
//	H6  a group has at most one open bundle, and gate and bundle say so together; where
//	    the events of a bundle lie never changes
//	H7  a gate moves to the end of the bundle that is closed, and back only by a Replay,
//	    which leaves a record; what is closed is not opened again otherwise; a bundle
//	    begins at the first event that the gate has not let through
//	H8  ordinals and slots are dense and used once; a drawer holds no more than its
//	    capacity; a sealed one takes no more and is sealed at what was committed
//	H9  a bundle spans at most six drawers
//	notices  the commit that dequeues a bundle creates its notices, and no other does: one
//	    for the domain if the content is made on request, one for subscribers if the gate
//	    has any, one for watches if the bundle is watched, with the number of the change;
//	    a notice never changes. The commit that removes a watched bundle creates one, too, and
//	    no other does; such a bundle has no time to live
//	L9  the content of a bundle changes only while the bundle is open, and only if it is marked as
//	    deleted; the mark ends with another content, and no content comes back
//	containers  every document lies in a container whose rules are known
//	retention  a floor never sinks and never rises above what is acknowledged; only
//	    what lies below it is removed
//
// Hints (catalog entries, positions, filters) may be wrong, so nothing is asked of
// them. What lies below the floor of its cabinet is read by nobody, so nothing is
// asked of that either: a Save that was rolled back and slept through the retention
// may still write there.
//
// An Observer has to see every commit, in order. The embedded engine tells of
// commits that follow each other in order, but not of those that are under way at
// the same time: let one request in at a time, as a simulation does.
package invariants
