// Package delivery calls receivers with the messages of streams. It calls a receiver at least
// once for each message, until the message is delivered or becomes a dead letter.
//
// An [Engine] serves the cursors of the shards that its node owns:
//
//	Published, or a look ─▶ wake ─▶ load ─▶ take ─▶ worker ─▶ call ─▶ settle
//	                                 ▲                 ▲               │
//	                                 └── another owner └── retry due ◀─┘
//
//	wake    entries that this process publishes wake its cursors immediately, and are taken from
//	        memory. Entries of other nodes and changes of receivers wake them within a second by
//	        a signal. If the signal is lost, a look every 30 seconds finds them
//	load    read the cursor and store its first settlement. Later settlements of earlier owners
//	        fail
//	take    in memory. After a crash, the next owner takes the entries again
//	worker  see below
//	call    a crash loses the results of calls, at most as many as the concurrency of the
//	        receiver. If the message cannot be read, no attempt is counted and the delivery
//	        waits in memory
//	settle  one settlement at a time for each cursor, with all results so far. Results wait up
//	        to 10 ms for the results of other calls, at most as long as a settlement takes. If
//	        the settlement is refused or its outcome is unknown, the cursor is loaded again,
//	        and the results are kept
//
// A consumer may also fetch deliveries. A request for a bundle is stored beside the cursor,
// like a request to replay, and a settlement carries it out. After this settlement, no node calls
// the receiver with deliveries of the bundle. [Engine.Settled] notifies callers that wait for a
// settlement, so that they need not poll the store.
//
// domain.Cursor has the rules of a cursor: hold, breaker, pause, and careful serving after an
// owner has crashed. Ownership only avoids useless work. Correctness depends on the conditional
// write of a settlement, which is the fence.
//
// # Nodes
//
// The nodes share 64 shards of cursors evenly. Each node stores a heartbeat, its beat, every 2
// seconds. The clocks of the nodes are not compared: a node is dead when its beat has not changed
// for 10 seconds on the clock of the observer.
//
//	starts   it beats, and takes shards without a living owner, up to its quota
//	joins    the other nodes release their shards above their quotas, after the cursors in them
//	stops    it releases its cursors and all its shards, and removes its beat
//	dies     the others take its shards after 10 seconds, and serve its cursors carefully
//	pauses   when its last confirmed beat is 6 seconds old, it begins no calls and loads no
//	         cursors, until it has stored another beat and then read the assignment
//	is blind it stops beating if it could not read the other nodes for 6 seconds
//
// A node with [Options.NoTakeover] does not replace nodes that die. It takes shards without an
// owner, such as those that another node released when it stopped. It also takes the shards of
// nodes that died before it started or within 10 seconds after that, so that work continues
// after a restart. The cursors of a node that dies later wait. Their deliveries are not lost,
// and messages that expire are counted. They wait until one of these happens:
//
//	a node starts, or a node without the option runs: within 10 seconds it detects that the owner
//	     has died, and takes the shards. Shards beyond its quota become free, and any node
//	     takes them
//	a node is asked about one of the cursors, by [Engine.Created] or [Engine.Changed]: it takes
//	     the shard, with all its cursors, as soon as it knows that the owner has died
//
// An append to a stream is not a request about its cursors, so it does not end the wait.
// [Engine.Orphaned] returns the shards that wait.
//
// A damaged assignment is replaced by the last assignment that a node has read. If reads return an
// older assignment for 10 seconds, the assignment was removed or restored by hand, and nodes
// follow it.
//
// Each beat carries the last signals: streams that were appended to, new cursors, receivers
// that have changed. A Save signals the data of its actor only if another node announces that it
// serves a cursor for this data. A beat carries such announcements as a set of hashes of 512
// bytes. A node with signals
// beats again after 250 ms. A node reads the beats of the other nodes every 500 ms. If it has
// missed signals, it looks at its shards and streams instead.
//
// # Workers and queues
//
// A worker has one call under way. A delivery that failed n times is in queue n; fresh deliveries
// are in queue 0. With at least as many workers as queues, each queue has a worker that no other
// queue can take. The other workers serve runs of queues: first the next queues in rotation,
// then queues that are drawn by their lengths. So a queue with deliveries that are due waits
// for at most queues / workers runs. Within a queue, each cursor gets one call in its turn.
// Picks alternate between the oldest cursor and the oldest cursor of the next stream. So a message
// to very many receivers does not delay the receivers of other streams until all have been
// called. Loads of cursors and reads of streams go in the same order.
//
// If deliveries of several priorities wait, the highest priority goes first, both among the
// cursors that may get a worker and within a cursor. Every eighth pick serves the lowest priority
// that waits, and one in 64 a priority between the highest and the lowest, if one waits. So no
// priority waits forever. The workers that are reserved for queues and the limit for suspects
// apply to all priorities together.
//
// Receivers whose last call failed, or took more than two seconds, are suspects: they get at
// most half of the workers. A receiver becomes a suspect as soon as a call has taken two
// seconds. Calls of suspects beyond that half need no worker. So a receiver that hangs occupies
// at most as many workers as its concurrency. Receivers that begin to hang at the same time
// delay the other receivers for two seconds, or slightly longer if very many receivers hang.
//
// A receiver may have a limit for its calls per second. When the limit is reached, its cursor
// is not offered: it waits without a worker and without a goroutine, and does not delay other
// cursors. Retries, replays and failed calls count, too.
//
// A receiver may be called in the order of the stream: one call at a time, and the next delivery
// only after the previous one has ended. So its cursor takes one entry after the other, and
// stores each result before the next call. While a delivery waits for its next attempt, the
// receiver is called only with replayed deliveries.
//
// # Watches
//
// A resource may have a million watches, so they are not kept in memory, and have no entries in the
// shard. The stream of the resource is listed in each shard that has watches of the resource. When
// the stream has new entries, the node that serves the shard visits the watches, page by page, up to
// 256 at a time:
//
//	visit   load the cursor, and wait until it has taken all entries, made the calls and stored
//	        the results. If a call fails, the watch is listed: the shard gets an entry for it
//	        before the failure is stored. Then the visit ends, and the cursor stays in memory. If
//	        the watch was listed before the visit, its cursor is stored once more before the visit
//	        ends: another node may own the cursor now and may have unlisted the watch. A watch is
//	        also listed if its receiver takes more than two seconds, or may not be called
//	mark    store how far the page was served. If a watch was added during the visits, visit it
//	        first. If a crash prevents the mark, the page is visited again; its cursors know what
//	        they have taken
//	leave   remove the cursor from memory, unless few cursors are in memory. If the watch was listed
//	        and no deliveries are outstanding, a settlement removes its entry from the shard, once
//	        the cursor has taken all entries before the current end of the stream: a previous owner
//	        may have listed the watch and then marked its page. The entry remains if it notes a
//	        change of the receiver that this node has not read. In this case the receiver is read
//	        again, without the risk of a stale read
//
// If the cursor of a watch is still being created, the next looks visit the watch again before
// its page is marked.
//
// A page with few watches is not marked, and its watches are visited again after a start. A read
// of this page may be stale, so the next look reads the page again, and visits the watches that
// were missing.
//
// # Senders that wait
//
// A sender may wait for the outcomes of its messages. Package outcome reads the stored results,
// whichever node serves the cursor. [Engine.Settled] notifies that package of the settlements of
// this node.
//
// # Warnings
//
// Every ten minutes, the engine looks at the cursors of receivers that fail, are paused, or
// have waiting messages. It logs deliveries that are about to become dead letters or to expire,
// while an operator can still prevent it, at most once an hour for each cursor. It counts the
// cursors with warnings.
//
// # Memory
//
// Entries of streams are in memory within one limit for all streams, [Options.Window]. An idle
// cursor has no goroutine, and is removed from memory after [Options.Idle].
package delivery
