// Package objects keeps what stores report about their objects in Azure Cosmos DB.
//
// # Documents
//
// They are in the container objects:
//
//	partition           id                  document
//	bucket|<bucket>     shards              how many shards the bucket has; never changed
//	shard|<nn>|<bucket> <key in base32hex>  object: its counts, its current row and its newest rows
//	                    -r.<hash>           a row that is spilled from the object
//	                    -v.<hash>           a copy of the newest spilled row of a version
//	                    -c.<hash>.<number>  a change of an object that is watched
//	                    -t.<hash>.<number>  a change of the current state of an object, for the topic
//	sweep               sweep               the sweep that began last, and how far it has come
//	jobs                <kind>.<uuid>       a job; it expires some time after its end
//	                    request.<uuid>      the request of a job, if it may be long; it expires with the job
//	                    running.<kind>.<bucket in base32hex>
//	                                        which job of an exclusive kind runs for a bucket
//
// The shard of an object is a hash of its key, so that one batch can store events of many objects.
// The ids of objects sort as their keys do. Ids have up to 1,023 bytes: of a key above 600 bytes,
// the id has the first 600 and a hash.
//
// The id of a spilled row is a hash of the identity of its event, so it is stored once. Other than
// the design has it, a row that is the newest of its version has a document of its own, too: then
// nothing has to be read when rows spill.
//
// # Ingest
//
// Callers of a shard gather behind a leader. A round has a call for all of its requests, and an id:
//
//  1. Read the objects by one query. A crash leaves nothing, here and until 4.
//  2. Decide by domain.ObjectUpdate.
//  3. If the decision depends on spilled rows, read them and the object by one query. They are
//     believed only if the object has the etag that was read: a replica applies the writes of a
//     partition in order, every change of a spilled row is in one batch with a change of its object,
//     and 4 proves that the object has not changed. If there are several result pages, each of them has
//     the object, since each may be answered by another replica. A query for the nearest row may be stale;
//     it only bounds what the one that proves has to read.
//     Of the copies, only the highest live ones are read, by a member that sorts as the rows do: so an object
//     whose versions are deleted from the newest on pays the same for each, however many there are.
//  4. Write one batch: each object If-Match or as a creation, with the id of the round, its spilled
//     rows and their copies. A crash, or a lost reply, leaves all of it or nothing.
//  5. If the batch is refused, read again. The id of the round in an object proves that the batch was
//     stored, as long as fewer than domain.MaxObjectWrites others came after it. Otherwise another
//     writer has changed one of the objects, and the batch is decided again. When that has happened a
//     few times, the object for which it was refused is stored by itself, and the others in a batch;
//     a batch that is too large is halved. The parts know the ids of the batches that they come from.
//
// While batches are refused, several nodes store events of the same objects, and each has a part of the callers.
// Then a round of a shard with several callers first waits, half as long as the last round took: so fewer and
// larger rounds store the same events.
//
// A late event may move more spilled rows than a batch can have. Then batches without an id move some of
// them after the other to where they belong with the event, and 1 to 4 follow for what remains. A crash in
// between leaves a valid object, as if a row had been moved by an event that was forgotten since. When
// the event is delivered again, it moves the others.
//
// Duplicates are counted in the same way, so an old read costs a retry and is never a wrong answer.
// An event that is too old changes nothing and needs no write: what an object has forgotten only
// grows, so what is too old for an old read is too old.
//
// A change of the facts of a row is written as a round of its own is: 1 to 4, with one object.
//
// # Watches
//
// A watch marks its object by a patch, on condition that it has a current row. The batch of an update that
// has another row current, or none, or changes the facts of the current one, also creates a change if the object
// is marked: its batch is If-Match, so an update that has read the object before is refused and sees the
// mark. An object that is not marked pays nothing. The change is in the partition of its object, until it is in
// the stream of the object; those that a node has left are found by a query over the ids of changes, which are
// between those of others. The rest is as package cosmos/push has it for other resources. A mark is never
// removed, and the sweep does not delete an object that has it: its versions continue when it is created again.
//
// # Topic
//
// With Options.Topic, the batch of an update that changes the current state of its object also creates a change
// for the topic, whether the object is watched or not: so there are both or none. A creation is such a change.
// It has a version that ascends, and is the time of the change or greater. So an object that was forgotten whole,
// which knows no version, repeats none. A relay appends the change to the stream of the topic and then removes
// it; a crash between the two leaves a change that is appended again, and found to be a duplicate. Changes that
// a node has left are found by a query over their ids. Without a topic, an object pays nothing more.
//
// # Lists
//
// A list in the order of keys reads from each shard its share of the page, and some more; a shard that
// has more of the page is read again. A list in any order reads one shard after the other, which costs
// one query a page. The key of the last object decides the shard to continue with. The current row
// of an object is in its document with each fact by itself, and what a list may look for is indexed.
//
// # Sweep
//
// One node sweeps at a time, page by page. Its turn is a lease, which each page prolongs; if two
// sweep after all, they cost each other retries. For each object of a page:
//
//  1. Decide by domain.ObjectUpdate.Forget, as an ingest decides, with the same proof of what is read. A
//     crash leaves nothing.
//  2. Write one batch: the object If-Match with what it has forgotten, without the spilled rows that go and
//     with other copies. A crash, or a lost reply, leaves all of it or nothing. Of an object
//     with many spilled rows, a batch has domain.MaxForgotten; each leaves a valid object.
//  3. An object of which nothing is left is deleted If-Match. Nothing remains to say what it has
//     forgotten: all of that is an hour older than the horizon, before which no event makes an
//     object. So an ingest that has decided, but was paused for an hour before its write, is the one
//     case in which an event comes back; so is a retention that is made longer than 14 days
//     after objects were forgotten by a shorter one.
//  4. Note the end of the page. A crash before repeats the page, which finds nothing to forget.
package objects
