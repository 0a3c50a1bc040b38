// Package engine keeps databases, containers and documents, and gives them
// the rules of Cosmos DB: logical partitions, etags, conditional writes,
// patches, transactional batches, queries in pages, and a charge for each.
//
// It knows no HTTP: package wire translates. It knows no file: package disk
// stores. Its promises rest on disk's serial transactions:
//
//   - Whether a document exists, and which etag it has, is looked up in the
//     same transaction that writes. Of many writers with one etag exactly one
//     succeeds.
//   - A batch is one transaction: readers see all of it or nothing.
//   - An etag is never used twice, not even after a restart.
//   - A result page is read from one state of the store. Between pages
//     nothing is held: a continuation token says where to go on.
//
// How things are stored (all numbers big-endian, so that keys sort):
//
//	m counter                    number of the newest write: etags, order, session tokens
//	m identity                   random, makes the etags of this store unlike all others
//	m format                     number of this layout
//	m resource                   number of the newest database or container
//	d database                   its record
//	c database 0 container       its record
//	N container                  says that the container exists
//	I container partition id     sequence of the document: the id index of the partition
//	D container partition seq    header, and the JSON of a small document
//	B container version          the JSON of a large document
//	P container partition        number of the last write in the partition, bytes of its documents
//	L container version          partition and sequence of the document: the change feed
//	U container partition values sequence of the document that has these unique values
//
// Scanning D gives a partition in the order of insertion. Large documents lie
// apart because rewriting a small one also rewrites its neighbours in D.
//
// How a query finds its documents:
//
//   - A condition that demands a partition key leads to one logical partition, and
//     no other is read.
//   - One that demands an id, or one of several, leads to these documents by I. Across
//     partitions, I tells which of them have such a document, and no other is visited;
//     to learn that, a page reads an entry or more of I for every partition.
//   - Across partitions, a condition on an indexed partition key (IN, or OR of
//     equalities) leads to the partitions that it names.
//   - ORDER BY c.id within a logical partition walks through I, forward or backward,
//     from the end of the page before to the end of this one. What the page costs does
//     not depend on how many documents the partition has.
//   - A range of ids (<, <=, >, >=, BETWEEN, STARTSWITH, and what AND makes of them)
//     confines such a walk. Without ORDER BY c.id, the documents in the range are
//     looked up in the order of insertion, or the partition is scanned, whichever
//     ends first.
//   - Every other condition, on whichever path, is tested on each document that is
//     left, in its raw text and without building a value.
//   - Any other ORDER BY sorts. Pages after the first of one that turns out to be the
//     order of insertion continue where the one before ended.
//
// The charge is that of a service with an index of every path that the policy
// includes, whichever documents were read to find the results: a document is charged
// when it is a result or, if a part of the condition has no index, when the part that
// has one holds for it. Such a query with ORDER BY c.id therefore reads all of its
// range for every page: they are charged.
//
// There is no index of other paths. The default policy of Cosmos DB indexes
// every path, so it would have an entry for each value of each document. Ten
// entries more for a document of ten values make a batch of 100 creates take
// more than four times as long (measured with ten unique keys, which lie as an
// index would), and that for every write. What it would save is the scan of a
// logical partition: 1 µs a document, 60 ms for 60,000 of half a kilobyte. The
// charges are those of a service that has the index.
package engine
