// Package embedded is a Cosmos DB account inside the process. The azcosmos client uses it
// through Transport as it uses Azure, and a confirmed write is on disk.
//
//	engine, err := embedded.Open(embedded.Options{Dir: dir})
//	cred, err := azcosmos.NewKeyCredential(engine.Key())
//	client, err := azcosmos.NewClientWithKey(engine.Endpoint(), cred, &azcosmos.ClientOptions{
//		ClientOptions: azcore.ClientOptions{Transport: engine.Transport()},
//	})
//
// The package has layers. Each layer uses only the layers below it:
//
//	internal/wire     REST: routes, signatures, headers, status codes
//	internal/physics  budgets of request units, and the latency of responses
//	internal/engine   documents, partitions, etags, batches, patches, charges
//	internal/query    the query language
//	disk              ordered keys and values, serial transactions, one file
//
// The engine keeps the promises of Cosmos DB:
//
//   - If-Match is exact: of several writers with the same etag one succeeds, all others fail
//     with 412.
//   - A transactional batch is executed completely or has no effect, and readers never see a
//     part of it.
//   - A confirmed write survives the death of the process if Options.Dir is set. A write whose
//     response was lost was executed completely or not at all; a read shows whether it was.
//   - Every request is charged by published figures, in exact numbers that depend only on the
//     data.
//   - A document becomes invisible to all clients the moment it expires.
//   - A container has as many physical partitions as its throughput and its size need. They
//     split, and clients are notified as on Azure.
//
// ORDER BY also returns documents without the property, before all other documents. The documentation
// says this, but also says that with a policy of all paths (/*) such documents are not results. The
// service has returned them since 2022, as a remark on its page, the suite of gocosmos and an issue
// of eclipse-edc show. Options.OrderByOnlyIndexed excludes them.
//
// By default the engine simulates no limits. With Options.Throttle a physical partition is limited
// to its share of the throughput; with Latency responses are delayed; with Stale and Lag reads see
// an older state; with Collide writes conflict.
//
// All 43 emulator tests of azcosmos pass: make conformance-azcosmos. The tests with the client for
// Node pass, too: make test-clients. This client sends bulk batches, and combines the results of
// physical partitions by a query plan. Of the 113 tests of gocosmos, 111 pass: make
// conformance-gocosmos. Of Microsoft's 141 samples of queries, 134 have the documented result:
// internal/querysamples. Requests may address resources by names, or by resource ids as the client
// for .NET does.
//
// The engine refuses unsupported features with 400 (or 401) and a text that names them: stored
// procedures, triggers, user-defined functions; users and permissions; computed properties; real
// tokens of Microsoft Entra ID; the change feed of all versions; deleting all documents of a
// partition key; across partitions, expressions that contain aggregates, and TOP, OFFSET and ORDER
// BY of subqueries over the whole container; and the parts of SQL that package internal/query does
// not list, such as vector and hybrid search. Hash version 1 of partition keys is computed as
// azcosmos does: other clients cannot send bulk batches to such a container once it has several
// physical partitions. The default is version 2.
//
// What a failure leaves behind: when a commit fails (a full or broken disk), that write and
// every later write fail with 500 until the engine is opened again; reads still succeed. Open
// restores the last synced state, and checks the order of all keys, but not the documents. Every
// document has a checksum: reading a damaged document fails with 500 and names the document, and
// Check lists all damaged documents. Keys have no checksum: a flipped bit that does not change the
// order of keys can hide a document, or release its id or its unique values, until Check reports
// the damage.
//
// RESULTS.md has measurements, written by make bench-engine.
package embedded
