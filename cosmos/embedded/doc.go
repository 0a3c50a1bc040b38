// Package embedded is a Cosmos DB account inside the process: the azcosmos
// client talks to it through Transport as it talks to Azure, and what is
// answered is on disk.
//
//	engine, err := embedded.Open(embedded.Options{Dir: dir})
//	cred, err := azcosmos.NewKeyCredential(engine.Key())
//	client, err := azcosmos.NewClientWithKey(engine.Endpoint(), cred, &azcosmos.ClientOptions{
//		ClientOptions: azcore.ClientOptions{Transport: engine.Transport()},
//	})
//
// It is made of layers, each of which knows only those below it:
//
//	internal/wire     REST: routes, signatures, headers, status codes
//	internal/physics  budgets of request units, and the time that answers take
//	internal/engine   documents, partitions, etags, batches, patches, charges
//	internal/query    the query language
//	disk              ordered keys and values, serial transactions, one file
//
// What it promises, as Cosmos DB does:
//
//   - If-Match is exact: of any number of writers that hold the same etag one
//     wins, the others get 412.
//   - A transactional batch happens as a whole or not at all, and no reader
//     sees half of one.
//   - A success that was answered survives the death of the process, if
//     Options.Dir is set. A write whose answer was lost has happened as a
//     whole or not at all; reading tells which.
//   - Every request is charged by published figures, in exact numbers that
//     depend on nothing but the data.
//   - A document whose time to live is over is gone for everybody at once.
//   - A container has as many physical partitions as its throughput and its
//     size need. They split, and clients find out as they do on Azure.
//
// By default it is as fast as it can be. With Options.Throttle a physical
// partition gives no more than its share of the throughput; with Latency,
// Stale and Lag answers and replicas are late; with Collide writes meet.
//
// All 43 emulator tests of azcosmos pass: make conformance-azcosmos. So do
// tests with the client for Node, which sends bulk batches and puts together
// what physical partitions answer, as query plans tell it: make test-clients.
//
// What the engine does not have, it refuses with 400 (or 401) and says so:
// stored procedures, triggers, functions of users; users and permissions; real
// tokens of Microsoft Entra ID; the change feed of all versions; deleting all
// documents of a partition key; across partitions, expressions made of
// aggregates; and the parts of SQL that package internal/query does not list,
// among them vector and hybrid search. A container that asks for version 1 of
// the hash of keys has it as azcosmos computes it: other clients cannot send
// bulk batches to it once it has several physical partitions. One that asks
// for none gets version 2.
//
// What a failure leaves behind: when a commit fails (a full or broken disk),
// that write and every later one fail with 500 until the engine is opened
// again; reading goes on. Opening finds the last state that was synced, and
// looks at the order of all keys, but not at documents. Every document carries
// a checksum: one that is not what was written is answered with 500 and its
// place, never with its content, and Check lists them all. Keys carry none: a
// flipped bit that leaves them in order can hide a document, or free its id or
// its unique values, until Check tells.
//
// What it costs stands in RESULTS.md: make bench-engine.
package embedded
