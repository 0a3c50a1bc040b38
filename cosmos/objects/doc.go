// Package objects stores the events that object stores report about their objects in Azure Cosmos DB.
//
// # Documents
//
// The documents are in the container objects:
//
//	partition           id                  document
//	bucket|<bucket>     shards              the number of shards of the bucket; never changed
//	shard|<nn>|<bucket> <key in base32hex>  object: its counts, its current row and its newest rows
//	                    -r.<hash>           a row that is spilled from the object
//	                    -v.<hash>           a copy of the newest spilled row of a version
//	                    -c.<hash>.<number>  a change of a watched object
//	                    -t.<hash>.<number>  a change of the current state of an object, for the topic
//	sweep               sweep               the last sweep, and its position
//	jobs                <kind>.<uuid>       a job; it expires some time after its end
//	                    request.<uuid>      the request of a job, if it may be long; it expires with the job
//	                    running.<kind>.<bucket in base32hex>
//	                                        the running job of an exclusive kind for a bucket
//
// The shard of an object is a hash of its key, so that one batch can store events of many objects.
// The ids of objects sort as their keys do. An id has up to 1,023 bytes: for a key of more than 600
// bytes, it consists of the first 600 bytes and a hash.
//
// The id of a spilled row is a hash of the identity of its event, so no row is stored twice. The newest
// spilled row of a version also has a copy in a separate document, so that rows can spill without a read.
//
// # Ingest
//
// The requests of a shard's callers are queued, and one caller, the leader, stores them together in
// a round. A round makes all its requests in one call, and has an id:
//
//  1. Read the objects by one query. A crash before step 4 leaves nothing.
//  2. Decide by domain.ObjectUpdate.
//  3. If the decision depends on spilled rows, read these rows and the object by one query. The rows
//     are valid only if the object has the etag that step 1 read. A replica applies the writes of a
//     partition in order, every change of a spilled row is in one batch with a change of its object,
//     and step 4 ensures that the object has not changed. A different replica may serve each result
//     page, so each page contains the object. A query for the nearest row may be stale: it only limits
//     the rows that the query with the object must read. Of the copies, only the highest live copies
//     are read, by a member that sorts as the rows do. So the cost of deleting the newest version does
//     not depend on the number of versions.
//  4. Write one batch: each object, If-Match or as a creation, with the id of the round, its spilled
//     rows and their copies. The batch is atomic, so a crash or a lost reply leaves all of it or nothing.
//  5. If the batch is refused, read the objects again. If an object has the id of the round, the batch
//     was stored. The id remains in the object for domain.MaxObjectWrites writes. If the id is missing,
//     another writer has changed one of the objects, and the batch is decided again. After a few
//     refusals, the object for which the batch was refused is stored separately, and the other objects
//     in a batch. A batch that is too large is halved. Each part has the ids of the batches from which
//     it was split.
//
// A refused batch means that several nodes store events of the same objects, each for a part of the
// callers. For some rounds after a refusal, a round of a shard with several callers first waits for half
// the duration of the last round, so that fewer and larger rounds store the same events.
//
// A late event may move more spilled rows than fit into a batch. In this case, batches without an id
// first move some of the rows to their new places, and steps 1 to 4 move the remaining rows. A crash
// between the batches leaves a valid object, as if an event that is now forgotten had moved the rows.
// When the late event is delivered again, it moves the remaining rows.
//
// Duplicates are counted by the same steps, so a stale read costs a retry and never causes a wrong
// result. An event that is too old changes nothing and needs no write, even if the read was stale:
// objects do not restore forgotten rows, so an event that is too old for an older state is too old for
// the current state.
//
// A change of the facts of a row is written by steps 1 to 4, like a round with one object.
//
// # Watches
//
// A watch marks its object by a patch, on condition that the object has a current row. An update of a
// marked object that selects another current row, or changes the facts of the current row, also creates
// a change, in the same batch. The batch is If-Match, so an update that read the object before the mark
// is refused, and reads the mark when it is repeated. An unmarked object has no additional cost. The
// change remains in the partition of its object until it is in the stream of the object. Changes that
// a crashed node left are found by a query over the prefix of their ids. Watches of objects are otherwise
// like watches of other resources; see package cosmos/push. A mark is never removed, and the sweep does
// not delete a marked object, so its versions continue when it is created again.
//
// # Topic
//
// With Options.Topic, an update that changes or creates the current state of its object also creates a
// change for the topic in the same batch, whether the object is watched or not. So the state and its
// change are stored together, or neither is stored. The version of a change is greater than that of the
// previous change, and at least the time of the change. So an object whose document was deleted, and
// which is created again, does not repeat a version. A relay appends the change to the stream of the
// topic and then removes it. If it crashes between these writes, the change is appended again, and the
// stream drops the duplicate. Changes that a crashed node left are found by a query over their ids.
// Without a topic, an update has no additional cost.
//
// # Lists
//
// A list in the order of keys reads from each shard its share of the page, and some more objects. If the
// page needs more objects of a shard, the shard is read again. A list in any order reads one shard after
// the other, which costs one query for each page. The key of the last object determines the shard with
// which the list continues. The document of an object contains its current row, with a member for each
// fact, and the members by which lists select are indexed.
//
// # Sweep
//
// One node sweeps at a time, page by page. It has a lease, which each page extends. If two nodes sweep
// at the same time, they only cause retries. For each object of a page:
//
//  1. Decide by domain.ObjectUpdate.Forget, and read spilled rows as in step 3 of an ingest. A crash
//     leaves nothing.
//  2. Write one batch: remove the forgotten rows from the document of the object, If-Match, delete the
//     forgotten spilled rows, and replace their copies. The batch is atomic, so a crash or a lost reply
//     leaves all of it or nothing. A batch forgets up to domain.MaxForgotten spilled rows of an object,
//     and each batch leaves a valid object.
//  3. Delete an object without rows, If-Match. The forgotten rows need no record: they are at least an
//     hour older than the horizon, and events older than the horizon create no object. A forgotten event
//     can be stored again in two cases: an ingest was paused for an hour between its decision and its
//     write, or the retention was extended to more than 14 days after objects were forgotten under a
//     shorter retention.
//  4. Store the end of the page. After a crash before this write, the page is repeated and finds nothing
//     to forget.
package objects
