// Package memory stores events, bundles and content in maps and slices. It is the smallest correct
// implementation of the ports, and the oracle with which all other implementations are compared.
//
// It is for tests and for experiments. It explains the contracts of package repository by example: where
// a durable store needs drawers, pages and conditional writes, this store needs a lock and a few
// assignments:
//
//	recipient ─▶ events received, by id
//	          ─▶ cabinets: the events in order, and how many are acknowledged
//	          ─▶ gate of each group: generation and open bundle
//	          ─▶ outbox: the notices of bundles that were acknowledged
//
// A gate moves to its next generation whenever a bundle is opened or acknowledged. A run records the
// generation from which it was computed, so a bundle made from an outdated run is refused.
//
// [Streams] and [Cursors] belong to the push side and are separate types. [Objects] is also a separate
// type, which stores all rows of an object in one value.
//
// Every call is atomic, so a failure leaves nothing behind. Only entries of streams and dead letters
// expire. All data is lost when the process ends.
package memory
