// Package delivery calls receivers with the messages of streams: each at least once, until it
// is delivered or a dead letter.
//
// An [Engine] serves the cursors of the shards that its node owns:
//
//	Published, or a look ─▶ wake ─▶ load ─▶ take ─▶ worker ─▶ call ─▶ settle
//	                                 ▲                 ▲               │
//	                                 └── another owner └── retry due ◀─┘
//
//	wake    what this process publishes wakes its cursors at once, and is taken from memory.
//	        What others publish is found by looking, every 30 seconds
//	load    proves the cursor. From then on, settlements of earlier owners are refused
//	take    in memory. A crash loses nothing: the next owner takes again
//	worker  see below
//	call    a crash leaves calls without a trace, at most the concurrency of the receiver
//	settle  one at a time for each cursor, with everything that has gathered. If it is refused
//	        or its outcome is not known, the cursor is loaded again; results are kept
//
// The rules of a cursor are those of domain.Cursor: hold, breaker, pause, and careful serving
// after an owner ended. Ownership spares work and decides nothing: the conditional write of a
// settlement is the fence.
//
// # Workers and queues
//
// A worker is the right to have one call under way. A delivery that failed n times is in queue
// n; fresh ones are in queue 0. With at least as many workers as queues, each queue has a
// worker that no other queue can take. The others go by turns: in each run, first the next
// queues in rotation, then queues drawn by their lengths. So no queue with something due is
// passed over for more than queues / workers runs. In a queue, cursors go in turn, with one
// call each.
//
// Receivers whose last call failed have at most half of the workers. So a receiver that hangs
// keeps its own concurrency of workers until its calls have timed out, and any number of dead
// receivers leave the other half to the healthy ones.
//
// # Memory
//
// Entries of streams are in memory within one limit for all streams, [Options.Window]. An idle
// cursor has no goroutine, and is forgotten after some minutes.
package delivery
