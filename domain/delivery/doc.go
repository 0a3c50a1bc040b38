// Package delivery calls receivers with the messages of streams: each at least once, until it
// is delivered or a dead letter.
//
// An [Engine] serves the cursors of the shards that its node owns:
//
//	Published, or a look ─▶ wake ─▶ load ─▶ take ─▶ worker ─▶ call ─▶ settle
//	                                 ▲                 ▲               │
//	                                 └── another owner └── retry due ◀─┘
//
//	wake    what this process publishes wakes its cursors without delay, and is taken from memory.
//	        What other nodes publish, and changes of receivers, wake them within a second, by a
//	        signal, and are found by looking every 30 seconds if the signal is lost
//	load    proves the cursor. From then on, settlements of earlier owners are refused
//	take    in memory. A crash loses nothing: the next owner takes again
//	worker  see below
//	call    a crash leaves calls without a trace, at most the concurrency of the receiver. If
//	        the message cannot be read, nothing is counted and the delivery waits in memory
//	settle  one at a time for each cursor, with everything that has gathered. Results wait for
//	        those of other calls as long as a settlement takes, up to 10 ms. If it is refused
//	        or its outcome is not known, the cursor is loaded again; results are kept
//
// A consumer may also fetch deliveries. A request for a bundle is stored beside the cursor,
// like a request to replay, and a settlement follows it. From then on, no node calls the
// receiver with deliveries of the bundle. [Engine.Settled] notifies callers that wait for a
// settlement, so that they need not poll the store.
//
// The rules of a cursor are those of domain.Cursor: hold, breaker, pause, and careful serving
// after an owner ended. Ownership only avoids useless work. Correctness depends on the
// conditional write of a settlement, which is the fence.
//
// # Nodes
//
// The nodes share 64 shards of cursors evenly. Each stores a beat every 2 seconds. The clocks of
// the nodes are not compared: a node is dead when its beat has not moved for 10 seconds on the
// clock of the observer.
//
//	starts   beats, and takes the shards that no living node has, up to its quota
//	joins    the others release the cursors of shards above their quotas, and then the shards
//	stops    releases its cursors, gives all its shards back, and removes its beat
//	dies     the others take its shards after 10 seconds. Its cursors are served carefully
//	pauses   begins no call and loads no cursor once its last confirmed beat is 6 seconds old,
//	         until it has stored another one and read the assignment after that
//	is blind does not beat once it has not been able to read the others for 6 seconds
//
// A node with [Options.NoTakeover] does not replace nodes that die. It takes shards without an
// owner, such as those that another node released when it stopped. It also takes the shards of
// nodes that died before it started or within 10 seconds after that, so that work continues
// after a restart. The cursors of a node that dies later wait. Their deliveries are not lost,
// and messages that expire are counted. They wait until one of these happens:
//
//	a node starts, or one without the option runs: it has found within 10 seconds that their owner
//	     has died, and takes their shards. Those beyond its quota are free from then on, and any
//	     node takes them
//	a node is asked about one of them, by [Engine.Created] or [Engine.Changed]: it takes the shard,
//	     with all its cursors, as soon as it knows that the owner has died
//
// Appending to a stream does not ask about cursors. [Engine.Orphaned] returns the shards that
// wait.
//
// An assignment that is damaged is replaced by what a node has read before. If reads return an
// older assignment for 10 seconds, the assignment was removed or restored by hand, and nodes
// follow it.
//
// Each beat carries the last signals: streams that were appended to, new cursors, receivers
// that have changed. A Save signals the data of its actor only if another node announces, by
// its beats, that it serves a cursor for it: a set of hashes of 512 bytes. A node with signals
// beats again after 250 ms. A node reads the beats of the others every 500 ms. If it has missed
// signals, it looks at its shards and streams instead.
//
// # Workers and queues
//
// A worker has one call under way. A delivery that failed n times is in queue n; fresh ones are
// in queue 0. With at least as many workers as queues, each queue has a worker that no other
// queue can take. The other workers serve runs of queues: first the next queues in rotation,
// then queues that are drawn by their lengths. So a queue with deliveries that are due waits
// for at most queues / workers runs. Within a queue, each cursor gets one call in its turn.
// Picks alternate between the oldest cursor and the oldest one of the next stream. So a message
// to very many receivers does not delay the receivers of other streams until all have been
// called. Loads of cursors and reads of streams go in the same order.
//
// If deliveries of several priorities wait, the highest priority goes first, both among the
// cursors that may get a worker and within a cursor. Each eighth pick is the lowest priority,
// and one in 64 is a priority between them, if there is any. So no priority waits for ever. The
// workers that are reserved for queues, and the limit for suspects, remain.
//
// Receivers whose last call failed, or took more than two seconds, are suspects: they have at
// most half of the workers. A receiver becomes a suspect as soon as a call has taken two
// seconds. Calls of suspects beyond that half need no worker. So a receiver that hangs occupies
// at most as many workers as its concurrency. Receivers that begin to hang at the same time
// delay the others for two seconds, or a little longer if they are very many.
//
// A receiver may have a limit for its calls per second. When the limit is reached, its cursor
// is not offered: it waits without a worker and without a goroutine, and does not delay other
// cursors. Retries, replays and failed calls count, too.
//
// A receiver may be called in the order of the stream: one call at a time, and no later
// delivery until a delivery has ended. So its cursor takes one entry after the other, and
// stores each result before the next call. While a delivery waits for its next attempt, only
// replays are called.
//
// # Watches
//
// A resource may have a million watches, so they are not kept in memory, and have no entries in the
// shard. Its stream is listed in each shard that has watches of it. When it has new entries, the node
// that serves the shard visits the watches, page by page, up to 256 at a time:
//
//	visit   load the cursor, and wait until it has taken, called and stored everything. One that has
//	        failed is listed in the shard, before that is stored: its visit ends, and it stays in memory.
//	        A cursor that was listed before is stored again: this node may no longer own it, and another
//	        owner may have unlisted it
//	        One whose receiver takes more than two seconds, or may not be called, is listed too
//	mark    store how far the page was served, unless a watch was added meanwhile: then visit that. A
//	        crash before leaves a page that is visited again: its cursors know what they have taken
//	leave   forget the cursor, unless few are in memory. One that was listed and has nothing outstanding
//	        is unlisted by a settlement, once it has taken what is before the current end of the stream: an
//	        owner before may have left it to the list, and marked its page. The entry stays if it has noted a
//	        change that was not followed, and the receiver is read without the risk of a stale read after
//	        one: what would be read again is the entry
//
// If the cursor of a watch is still being created, the next looks visit the watch again. Then
// its page is marked.
//
// A page with few watches is not marked, and its watches are visited again after a start. Its
// read may have been stale, so the next look reads it again, and visits the watches that were
// missing.
//
// # Senders that wait
//
// A sender may wait for the outcomes of its messages: see package outcome, which reads the
// stored results, whichever node serves the cursor. [Engine.Settled] notifies it of the
// settlements of this node.
//
// # Warnings
//
// Every ten minutes, the engine looks at the cursors of receivers that fail, are paused, or
// have waiting messages. It logs deliveries that are about to become dead letters or to expire,
// while an operator can still prevent it, at most once an hour for each cursor. It counts such
// cursors.
//
// # Memory
//
// Entries of streams are in memory within one limit for all streams, [Options.Window]. An idle
// cursor has no goroutine, and is forgotten after some minutes.
package delivery
