// Package push stores the push side of the hub in Azure Cosmos DB: streams of published messages,
// cursors with the position of each receiver, subscriptions, watches, and the parties of the broker. It
// also stores small documents of clients, which can be watched.
//
// A message is written once, into a stream, whatever the number of its receivers. Each receiver has
// one document, its cursor. Only a delivery that failed has a document of its own. Every change of a
// cursor is one conditional write. A cursor is owned by one node, which saves work, but safety does not
// depend on ownership. A delivery sends no query, except to load a cursor with retries, because the
// embedded engine indexes only ids.
//
// # Documents
//
//	streams                                  cursors
//	+-topic|name|segment----------+          +-cursor id--------------+
//	| head: the newest entries    |          | cursor                 |
//	| page-<priority>-<n>: older  |          | definition             |
//	|   ones, written once        |          | retry|<entry>: it      |
//	| id|<hash>: a sender's id    |          |   waits, or is a dead  |
//	+-----------------------------+          |   letter               |
//	   |                                     +-|shard|<k>-------------+
//	   |                                     | <cursor id>: entry     |
//	   |                                     | watched|<stream>       |
//	   |                                     +-|shard|<k>|<stream>----+
//	   |                                     | page|<n>: watchPage    |
//	   |                                     +-owner|<actor>----------+
//	   |                                     | owner                  |
//	   |                                     +-|consumers|channel-----+
//	   |                                     | <consumer>: party      |
//	   |                                     +-|watches|actor---------+
//	   |                                     | <watch>: watch         |
//	   |                                     +-|resource|name---------+
//	   |                                     | resource               |
//	   |                                     | change|<version>       |
//	   |                                     +-|turns-----------------+
//	   |                                     | changes: turn          |
//	   |                                     +-|nodes-----------------+
//	   |                                     | node|<incarnation>     |
//	   v                                     | assignment             |
//	                                         +------------------------+
//	content store: streams/<day>/<id>
//	   payloads above 16 KB
//
//	head    for each priority the number of the page that is being filled and its entries so
//	        far; the sync cursors, so that each append knows the receivers for which its sender waits.
//	        Sealed by the last append of its segment
//	page    up to 256 KB of entries, removed when the retention has passed
//	id      position and digest of a message whose sender chose its id; removed after 24 hours
//	cursor  for each priority, the position of the next entry to read; open entries; counters;
//	        count and digest of the retries. domain.Standing describes its members
//	retry   attempts so far, and when the next one is due; a dead letter is removed after 14
//	        days
//	entry   lists the cursor in its shard, with a time before which none of its retries is due. It
//	        has the last requests to replay; the cursor has the number of the last one that its
//	        owner carried out. It counts the changes of the subscription, so that a node that reads the
//	        shard notices them. The cursor of a watch has an entry only while it has outstanding
//	        deliveries
//	definition  the subscription of the cursor, with its secrets encrypted. After a deletion, it is
//	        marked as deleted, and outlives the cursor. It also lists the refused reservations of
//	        the id
//	owner   the reservations of an owner: ids of subscriptions, each with a number that the
//	        document never uses again. At most domain.MaxSubscriptions
//
//	party   a producer, a channel or a consumer of the broker: the digest of its token, or its
//	        encrypted token, and the position at which a consumer begins. Each list of parties is a
//	        partition, in which their names are the ids
//
//	watch   a resource, the URL that is called when it changes, and the version of the last change
//	        before it. Its cursor is in another partition, like all cursors
//	resource  a document of clients, whether it is watched, and the version of its last change. A
//	        deleted resource that was watched remains, so that its versions continue if it is
//	        created again
//	change  a change of a watched document, until the stream of the resource has it
//	watched a stream that has watches in this shard, and the number of their pages
//	watchPage  up to 500 cursors of watches of a stream in a shard, and a number in the stream: each
//	        of the cursors has read all entries before this number, or has an entry in the shard
//	turn    the time at which a node last began to search for unpublished changes. For some time,
//	        other nodes do not search for them
//
//	node    the number of the last beat, and signals of what the node has stored recently. Removed
//	        10 minutes after the last beat
//	assignment  the incarnation that serves each shard
//
// A damaged assignment is replaced by the last one that a node has read, and a damaged document of a
// node is removed, both with If-Match. Documents of a newer format remain unchanged.
//
// A segment is a logical partition, which Cosmos limits to 20 GB. So a stream continues in the next
// segment after 2 GB. Heads are never removed, so the last segment is found by binary search.
//
// # Traces
//
// The entries of a stream store the span that appended them, if Options.StoreTraces is set and the
// span is sampled: 24 bytes, which are 39 in JSON, for each call of Append, because the entries of a
// call share the span. The trace state of other systems is not stored. Retries and dead letters store no
// span, because their entry has it. A change of a resource stores no span, because any node may send its
// notification later; the notification begins a new trace.
//
// # Append
//
//	payload  store payloads above 16 KB in the content store. A crash leaves an object that no
//	         document refers to
//	write    replace the head, If-Match, with the entries in it, or create the head of a new
//	         stream. When the entries in the head exceed 4 KB, the entries of the priority with
//	         the most bytes move to a page; page, head and ids are one batch. A crash before leaves nothing; after it,
//	         the messages are published
//	open     create the next head once the head is sealed. A crash leaves an empty head
//
// The calls of a process for one stream are queued and appended together. If a write is refused, or its
// reply is lost, the appender reads the entry at the position that it chose for its first entry: each
// run of entries has the id of the write that appended it. The document of a message id has a write id,
// too. If the message id exists already, the write id shows whether it belongs to an earlier message or
// to this write.
//
// # Cursor
//
//	load    read the cursor and its retries. They belong together if count and digest match
//	prove   replace the cursor, If-Match, with the incarnation of the owner. A crash leaves a cursor
//	        that names this owner. The write is a fence: later writes of earlier owners are refused
//	take    add entries of the stream to the cursor in memory; see domain.Cursor
//	call    call the receiver. A crash loses the results of calls, up to the concurrency of the
//	        cursor
//	list    lower the time in the shard's entry, if a retry will be due before it. A crash
//	        leaves an entry that is too early, which costs a load of the cursor
//	settle  replace the cursor, If-Match, with all new results; with failures, in
//	        a batch that creates, replaces and deletes retries. A crash leaves nothing to
//	        repair
//
// If a settlement is refused, or its reply is lost, the caller reads the id of the last write in the
// cursor. If it is the id of another write, the caller loads the cursor again, and domain.Cursor.TakeOverCalls
// drops the results that are settled already. A stale read has the same consequence.
//
// If an owner ended without releasing its cursor, the next owner makes one call at a time, and
// stores a claim by a settlement before each call. domain.Suspects determines when this ends.
//
// A consumer may fetch deliveries in bundles instead of receiving calls. Its requests are stored with
// the requests to replay: any node adds them to the entry, and the owner of the cursor carries them out with
// a settlement:
//
//	request  replace the entry of the shard, If-Match, with a request for a bundle or to dequeue
//	         one. A crash leaves a request that the owner carries out, although its caller has gone
//	settle   the cursor stores the bundle: the positions of its new deliveries, and those of its
//	         retries, whose documents stay. A crash before leaves the request; after it, the bundle
//	         remains until an owner carries out a request to dequeue it
//
// The caller reads the cursor until the last request that was carried out has the number of its own
// request, or a higher number. A read with such a number is recent enough. A version of the hub that does not know
// bundles preserves the members of a bundle and skips the requests, but it calls receivers with the
// retries of a bundle.
//
// The cursor of a subscription that was deleted is closed, and is retired when all its deliveries
// are cancelled:
//
//	retire  in one batch, mark the cursor as retired, and set a TTL of 15 days, which outlasts its
//	        dead letters, and of 16 days for the definition. A crash before leaves a closed cursor,
//	        which its next owner retires. Until the definition expires, no subscription with this
//	        id can be created
//	unlist  remove the entry from the shard. A crash before leaves an entry that the next load
//	        removes, even if the cursor has expired before that
//
// # Nodes
//
//	beat    patch the node with a higher number, or create it. A crash leaves a node that seems
//	        to be alive until the other nodes have seen no new beat for 10 seconds
//	look    read all nodes and the assignment with one query of the partition
//	assign  replace the assignment, If-Match. A crash leaves shards of a dead node
//	leave   delete the node, after its shards were given back. A crash leaves a node without
//	        shards
//
// These documents save work, but safety does not depend on them: a node that acts on a stale assignment
// makes calls that another node also makes, and its settlements are refused.
//
// # Subscriptions
//
//	reserve create or replace the owner's document, If-Match, with a reservation of the id. A
//	        crash leaves a reservation without a subscription; a repeated call uses it
//	create  create the definition, or replace, If-Match, a refused definition that was read before
//	        the reservation. A crash leaves a subscription that its owner can list
//	replace replace the definition, If-Match, by a changed one
//	delete  replace the definition, If-Match, by one that is marked as deleted. A crash leaves a
//	        reservation, as does a failure of the next step
//	note    count the change in the entry of the cursor. A crash before, or a failure, leaves a
//	        change that the owner finds by its signal, or when it loads the cursor
//	release replace the owner's document, If-Match, without the reservation
//
// A subscription whose deliveries are sync is listed in the head of its topic:
//
//	list    after its cursor was created, replace the head, If-Match. An append also replaces the
//	        head, so an append that begins afterwards has the list. The head of the next segment
//	        has a copy of the list. A crash before leaves a subscription for which no sender waits,
//	        until its owner repeats the request or a node serves it
//	unlist  replace the head, If-Match, after the subscription was deleted or is no longer sync. A
//	        crash before leaves a cursor that is listed by mistake, until a sender would wait for
//	        it (package outcome)
//
// In a topic without sync subscriptions, the list adds no document and no request. A node of an older
// version preserves the list when it replaces a head, but creates the next head without it.
//
// If an owner has the maximum number of reservations, a creation reads the definition of each. It frees
// the reservations without a subscription, after a few pauses, because other nodes may be about to
// create these subscriptions. Before it frees a reservation, it records in the definition that the
// reservation with this number was refused. So a late creation finds a changed document and begins
// again. A refused creation costs as much as a list: a read for each subscription.
//
// # Parties
//
//	put     create the party, or replace it, If-Match. If the write is refused, its write id in the
//	        document shows whether an earlier attempt succeeded. A crash leaves the old or the new
//	        party. A new consumer may then lack a cursor, which a repeated call creates
//
// # Watches
//
//	mark    patch the resource as watched, or create it as absent. After a crash, its changes are
//	        published although it has no watch
//	watch   create the watch. A crash leaves a watch without a cursor, which is created when the
//	        watch is read
//	change  replace the resource, If-Match, and create the change, in one batch. A crash leaves
//	        both or neither. A document that is not watched is replaced alone, without further cost
//	publish append the change to the stream of the resource, as the entry with the number before
//	        its version: each version is appended once, whichever node appends it
//	remove  delete the change. A crash before leaves a change that is already in the stream
//
// The cursor of a watch is in a page of its shard. It has an entry there only while it has outstanding
// deliveries:
//
//	page    add the id to the last page, If-Match, or create the page. A crash leaves an id without a
//	        cursor, which a repeated call creates
//	list    if the page was empty, create or replace the shard's document of the stream, after the page:
//	        so a concurrent call that found the page empty cannot remove this document. A crash before
//	        leaves a page that no node reads, until the call is repeated
//	cursor  create the cursor. A crash before leaves an id without a cursor
//	served  patch the page, on condition that its cursors are those that were visited. A crash before
//	        leaves a page whose cursors are visited again
//	unlist  read the entry, settle the cursor without the time of the entry, and delete the entry,
//	        If-Match, unless it counts changes that the owner has not applied. A later owner that lists
//	        the cursor creates or changes the entry. A crash leaves an entry that the next owner removes
//	note    when the watch is replaced or deleted: create the entry, or count the change there. A crash
//	        before leaves a change that the owner finds by its signal, or when it loads the cursor
//	empty   delete the page, If-Match, if it is the only one and its last watch was retired, and then
//	        the shard's document, If-Match. A crash between them leaves a stream without a page
//
// If a node stores a change and ends before it publishes it, another node finds the change by its kind,
// with one query over all partitions. Changes of objects of stores are in the container of the objects;
// see package cosmos/objects.
//
// # Rules, and the tests that fail without them
//
//	a head is replaced If-Match                     TestTwoNodesOnOneCursor_LoseNothing
//	a write is recognized by id                     TestEveryCallBrokenOnceInEveryWay
//	a segment behind a sealed one may be sealed     TestTwoNodesOnOneCursor_LoseNothing
//	ids are searched in the segments of a day       TestConformanceWithSmallSegments
//	a party is replaced If-Match                    TestConformance
//	a version is appended in its place, once        TestConformance
//	a resource and its change are one batch         TestConformance, TestEveryCallBrokenOnceInEveryWay
//	a change during a mark is refused               TestConformance
//	a page is served if its cursors are the same    TestConformance
//	an earlier owner does not unlist a cursor       TestConformance
//	an entry with an unapplied change stays         TestConformance
//	a noted change is found without a stale read    TestACurrentWatchOrSubscription_IsNeverStale
//	a creation returns no stale definition          TestARepeatedCreation_IsNeverStale
//	a page that is not found may be invisible       TestAPageThatIsNotVisibleYet_HasNotExpired
//	a settlement is If-Match; a load is a fence     TestConformance
//	reservations are replaced If-Match              TestTwoNodesThatCreate_LoseNoReservation
//	a refusal is stored before a reservation goes   TestALateCreation_KeepsTheLimit
//	a refused reservation is replaced               TestACreationThatIsBeingRefused_IsListedOrFails
//	reservations without a subscription are freed   TestACrashAnywhere_LeavesNoReservationThatCounts
//	retries are proved by count and digest          TestRetriesThatDoNotFitTheCursor_AreNotLoaded
//	a cursor is retired before its entry goes       TestACrashAtAnyStepOfARetirement_IsCompletedLater
//	a list of sync cursors is replaced If-Match     TestConformance, TestTwoNodesThatListCursors_LoseNone
//	a list continues in the next segment            TestConformanceWithSmallSegments
//	a retired cursor is not loaded                  TestACrashAtAnyStepOfARetirement_IsCompletedLater
//	a new cursor keeps an existing entry            TestALeftoverEntry_IsNotRemovedFromANewCursor
//	an entry is stored before the first retry       TestACrashAfterEveryWrite_LosesNothing
//	a bundle is stored before it is returned        TestConformance, domain: TestACursor_KeepsItsRulesUnderRandomFaults
//	open entries, claims, caution, counters         domain: TestACursor_KeepsItsRulesUnderRandomFaults
//	a beat with a lower number changes nothing      TestConformance
//	the assignment is replaced by its version       TestConformance, TestNodesOnABrokenConnection_ShareTheShards
//	damaged documents of nodes are replaced         TestDamagedDocumentsOfNodes_StopNoDelivery
//	a damaged assignment is replaced by one node    TestADamagedAssignment_IsReplacedByOneNode
//	a newer format stops its own cursor alone       TestDocumentsOfANewerFormat_StopOnlyTheirCursors
//	a change is noted in the entry of the cursor    TestConformance
//	the cost of a beat and of a look                TestANode_CostsUpToItsLimit
//	the cost of each step                           TestADelivery_CostsUpToItsLimit, TestAFailedAttempt_CostsUpToItsLimit
//	the cost of a replay                            TestAReplay_CostsUpToItsLimit
//	the cost of a subscription                      TestSubscriptions_CostUpToTheirLimit
//
// ../../bench/simulate/mutants omits one of these rules at a time, from mutant 120 on.
//
// # Departures from the design
//
//   - A position identifies its entry by priority and number; segment and page only locate it.
//     So retries have short ids, and the number of expired entries is a difference.
//   - Nodes notify each other by signals in their documents, and not by the change feed of the
//     streams: azcosmos v1.5.0 reads a feed only by ranges of partitions, so each node would read
//     every page that any node has written. A signal costs a beat, whatever the number of messages
//     that were appended since the last beat. It also announces new cursors and changed receivers,
//     which the feed of the streams does not have.
//   - No document names the current segment. A binary search finds it, with one more read for each
//     doubling of the number of segments.
//   - The time in a shard's entry only decreases. An entry that is too early costs a load of the
//     cursor when the shard changes its owner, and no write.
//   - Only the last 16 attempts of a cursor are stored, and those of each retry; there are no
//     pages of older attempts.
//   - Large payloads are in a folder for each day, which [Store.Sweep] removes after the
//     retention, because a content store has no TTL. Entries older than the retention are not
//     returned, whether their documents have expired or not.
//   - The hub keeps other payloads out of Cosmos. Here, an object of up to 16 KB in the content
//     store would cost more than the whole delivery.
package push
