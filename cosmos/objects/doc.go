// Package objects keeps what stores report about their objects in Azure Cosmos DB.
//
// # Documents
//
// They are in the container objects:
//
//	partition           id                  document
//	bucket|<bucket>     shards              the number of shards of the bucket; never changed
//	shard|<nn>|<bucket> <key in base32hex>  object: its counts, its current row and its newest rows
//	                    -r.<hash>           a row that is spilled from the object
//	                    -v.<hash>           a copy of the newest spilled row of a version
//	                    -c.<hash>.<number>  a change of a watched object
//	                    -t.<hash>.<number>  a change of the current state of an object, for the topic
//	sweep               sweep               the sweep that began last, and its position
//	jobs                <kind>.<uuid>       a job; it expires some time after its end
//	                    request.<uuid>      the request of a job, if it may be long; it expires with the job
//	                    running.<kind>.<bucket in base32hex>
//	                                        which job of an exclusive kind runs for a bucket
//
// The shard of an object is a hash of its key, so that one batch can store events of many objects.
// The ids of objects sort as their keys do. Ids have up to 1,023 bytes: if a key has more than 600
// bytes, the id has the first 600 and a hash.
//
// The id of a spilled row is a hash of the identity of its event, so it is stored once. Unlike in
// the design, the newest row of a version also has a document of its own: so nothing has to be read
// when rows spill.
//
// # Ingest
//
// The requests of a shard's callers are queued, and one caller, the leader, stores them together in
// a round. A round makes all its requests in one call, and has an id:
//
//  1. Read the objects by one query. A crash leaves nothing, here and until 4.
//  2. Decide by domain.ObjectUpdate.
//  3. If the decision depends on spilled rows, read them and the object by one query. They are
//     trusted only if the object has the etag that was read before: a replica applies the writes
//     of a partition in order, every change of a spilled row is in one batch with a change of its
//     object, and 4 proves that the object has not changed. If there are several result pages,
//     each of them has the object, since another replica may answer each. A query for the nearest
//     row may be stale; it only limits what the query that proves the result has to read. Of the
//     copies, only the highest live ones are read, by a member that sorts as the rows do. So if
//     versions are deleted from the newest on, each deletion costs the same, however many
//     versions there are.
//  4. Write one batch: each object If-Match or as a creation, with the id of the round, its spilled
//     rows and their copies. A crash, or a lost reply, leaves all of it or nothing.
//  5. If the batch is refused, read again. The id of the round in an object proves that the batch was
//     stored, as long as fewer than domain.MaxObjectWrites others came after it. Otherwise another
//     writer has changed one of the objects, and the batch is decided again. After a few such refusals,
//     the object for which the batch was refused is stored separately, and the others in a batch. A batch
//     that is too large is halved. The parts know the ids of the batches from which they were split.
//
// If batches are refused, several nodes store events of the same objects, and each has a part of the
// callers. Then a round of a shard with several callers first waits for half the duration of the
// last round, so that fewer and larger rounds store the same events.
//
// A late event may move more spilled rows than a batch can have. Then several batches without an id
// move some of them to their new places, one after the other, and steps 1 to 4 follow for the
// remaining ones. A crash in between leaves a valid object, as if a row had been moved by an event
// that was forgotten since. When the event is delivered again, it moves the others.
//
// Duplicates are counted in the same way, so a stale read costs a retry and never causes a wrong
// answer. An event that is too old changes nothing and needs no write: an object never remembers
// again what it has forgotten, so an event that is too old for a stale read is too old.
//
// A change of the facts of a row is written like a round with one object, by steps 1 to 4.
//
// # Watches
//
// A watch marks its object by a patch, on condition that it has a current row. If the object is
// marked, and an update changes which row is current, or the facts of the current row, its batch
// also creates a change: its batch is If-Match, so an update that has read the object before is
// refused and sees the mark. An object that is not marked has no additional cost. The change is in
// the partition of its object until it is in the stream of the object. Changes that a node has left
// are found by a query over the ids of changes, which have a prefix. Everything else is as for other
// resources; see package cosmos/push. A mark is never removed, and the sweep does not delete an
// object that has it: its versions continue when it is created again.
//
// # Topic
//
// With Options.Topic, the batch of an update that changes the current state of its object also
// creates a change for the topic, whether the object is watched or not: both are stored, or neither.
// A creation is such a change. The version of a change is greater than the one before, and at least
// the time of the change. So an object that was forgotten whole, and has lost its version, repeats
// no version. A relay appends the change to the stream of the topic and then removes it; a crash
// between the two leaves a change that is appended again, and found to be a duplicate. Changes that
// a node has left are found by a query over their ids. Without a topic, there is no additional cost.
//
// # Lists
//
// A list in the order of keys reads from each shard its share of the page, and some more; a shard
// that has more of the page is read again. A list in any order reads one shard after the other,
// which costs one query for each page. The key of the last object determines the shard to continue
// with. The current row of an object is in its document, with a member for each fact, and the
// members by which lists select are indexed.
//
// # Sweep
//
// One node sweeps at a time, page by page. It has a lease, which each page extends; if two nodes
// sweep nevertheless, they only cause each other retries. For each object of a page:
//
//  1. Decide by domain.ObjectUpdate.Forget, as an ingest decides, with the same proof for spilled
//     rows. A crash leaves nothing.
//  2. Write one batch: replace the object, If-Match, by one without the forgotten rows, delete
//     the forgotten spilled rows, and replace their copies. A crash, or a lost reply, leaves all
//     of it or nothing. Of an object with many spilled rows, a batch forgets up to
//     domain.MaxForgotten; each batch leaves a valid object.
//  3. An object of which nothing is left is deleted If-Match. Nothing records what it has
//     forgotten: all of that is an hour older than the horizon, and older events create no
//     object. So an event is stored again only if an ingest was paused for an hour between its
//     decision and its write, or if the retention was extended above 14 days after objects were
//     forgotten under a shorter one.
//  4. Store the end of the page. A crash before this write repeats the page, which finds nothing to forget.
package objects
