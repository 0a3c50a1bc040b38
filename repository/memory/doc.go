// Package memory keeps events, bundles and content in maps and slices: the
// smallest right implementation of the ports, and the oracle that every other
// one is compared with.
//
// It is for tests and for trying things out. Read it to see what the contracts
// of package repository mean: what a durable store does in drawers, pages and
// conditional writes is here one lock and a few assignments:
//
//	recipient ─▶ events received, by id
//	          ─▶ cabinets: the events in order, and how many are acknowledged
//	          ─▶ gate of each group: generation and open bundle
//	          ─▶ outbox: the notices of bundles that were acknowledged
//
// A gate moves to its next generation whenever a bundle is opened or
// acknowledged. A run remembers the generation it was computed from, so a bundle
// made from an outdated run is refused.
//
// [Streams] and [Cursors] belong to the push side and are separate. So is [Objects], which keeps
// all rows of an object in one value.
//
// Every call is atomic, so a failure leaves nothing behind. Only entries of
// streams and dead letters ever
// expire, and nothing survives the process.
package memory
