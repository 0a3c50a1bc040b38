// Package invariants checks every commit of a hub's store against the invariants that no interleaving and no crash
// may break.
//
// A simulation compares the events that clients send with the events that they receive, so it finds a fault only after
// the fault has an effect. An Observer checks the documents at every commit. For example, it finds a number that is
// assigned twice at the second assignment, and its error shows the document before and after. Tests call it from
// embedded.Options.Committed.
//
// An Observer uses the layout of documents that package cosmos describes. It shares no code with that package, so that
// the two do not share a mistake. The rules have the names of the hub's design:
//
//	H3  numbers ascend and are never assigned twice
//	H4  each bundle of a group begins with a higher number than the earlier bundles of the
//	    group, unless an operator has released an earlier bundle
//	H5  the watermark never decreases; when it moves to the end of the current intent,
//	    everything that the intent announced is stored; no bundle has a number above it
//	H6  a group has at most one open bundle, and gate and bundle agree on it; the positions
//	    of a bundle's events never change
//	H7  a gate moves to the end of the bundle that is closed; only a Replay, which creates a
//	    record, moves the gate back and opens a closed bundle again; a bundle begins at the
//	    first event after the gate
//	H8  ordinals and slots are dense and used once; a drawer holds at most its
//	    capacity; a sealed drawer does not grow, and is sealed at its committed events
//	H9  a bundle spans at most six drawers
//	notices  only the commit that dequeues a bundle creates its notices: one for the domain if
//	    the content is produced on request, one for subscribers if the gate has subscribers,
//	    and one for watches, with the number of the change, if the bundle is watched; a notice
//	    never changes. Only the commit that removes a watched bundle creates the notice of its
//	    removal; a watched bundle has no time to live
//	L9  the content of a bundle changes only while the bundle is open and marked as having
//	    lost its content; new content removes the mark, and no earlier content returns
//	containers  every document is in a container whose rules are known
//	retention  a floor never decreases and never exceeds what is acknowledged; only
//	    documents below it are removed
//
// Hints (catalog entries, positions, filters) may be wrong and are not checked. Documents below the floor of their
// cabinet are never read again, and are not checked either: a Save that was rolled back and paused for longer than the
// retention may still write them.
//
// An Observer must see every commit, in order. The embedded engine may report concurrent commits in the wrong order, so
// a test must make one request at a time, as a simulation does.
package invariants
