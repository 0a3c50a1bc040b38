// Package engine stores databases, containers and documents, and implements the rules of Cosmos
// DB: logical partitions, etags, conditional writes, patches, transactional batches, queries in
// pages, and a charge for each request.
//
// Package wire serves the engine over HTTP, and package disk stores the data. The promises of
// the engine rest on the serial transactions of package disk:
//
//   - A write looks up the document and its etag in its own transaction. Of several writers
//     with the same etag, exactly one succeeds.
//   - A batch is one transaction: readers see all of it or nothing.
//   - An etag is never used twice, not even after a restart.
//   - A result page is read from one state of the store. The engine stores
//     nothing between pages: the continuation token holds the position.
//
// How things are stored (all numbers big-endian, so that keys sort):
//
//	m counter                    number of the newest write: etags, order, session tokens
//	m identity                   random number in all etags: no other store has the same etags
//	m format                     number of this layout
//	m resource                   number of the newest database or container
//	d database                   its record
//	c database 0 container       its record
//	N container                  marks that the container exists
//	I container partition id     sequence of the document: the id index of the partition
//	D container partition seq    header, and the JSON of a small document
//	B container version          the JSON of a large document
//	P container partition        number of the last write in the partition, bytes of its documents
//	L container version          partition and sequence of the document: the change feed
//	U container partition values sequence of the document that has these unique values
//
// Scanning D returns a partition in the order of insertion. Large documents are stored in B,
// because rewriting a small document also rewrites its neighbours in D.
//
// How a query finds its documents:
//
//   - If the condition requires one partition key, only that logical partition is read.
//   - If the condition requires one of some ids, the documents are looked up in I. Across
//     partitions, only partitions with such a document are read; to find them, a page reads at
//     least one entry of I for every partition.
//   - Across partitions, if the condition restricts an indexed partition key to some values
//     (IN, or OR of equalities), only these partitions are read.
//   - ORDER BY c.id within a logical partition reads I, forward or backward, from the end of
//     the last page to the end of this one. The cost of a page does not depend on the number of
//     documents in the partition.
//   - A range of ids (<, <=, >, >=, BETWEEN, STARTSWITH, joined by AND) limits the entries of I
//     that are read. Without ORDER BY c.id, the documents in the range are looked up in the
//     order of insertion, or the partition is scanned, whichever finishes first.
//   - All other conditions are tested on each remaining document, on its raw text without
//     building values.
//   - Any other ORDER BY sorts. If the resulting order is the order of insertion, each later
//     page continues where the previous page ended.
//
// The charge is that of a service that indexes every path that the policy includes. It does not
// depend on the documents that the engine read: a document is charged if it is a result. If a
// part of the condition has no index, every document is charged for which the indexed part
// holds. With ORDER BY c.id, a query with such a condition therefore reads its whole range
// for every page, and is charged for the range.
//
// The engine does not index other paths. The default policy of Cosmos DB indexes every path, which
// would store an entry for each value of each document. Ten more entries for a document of ten
// values make a batch of 100 creates take more than four times as long (measured with ten
// unique keys, which are stored as an index would be). An index would save the scan of a
// logical partition: 1 µs a document, 60 ms for 60,000 documents of half a kilobyte. The
// charges are those of a service that has the index.
package engine
