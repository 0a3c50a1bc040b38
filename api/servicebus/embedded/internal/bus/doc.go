// Package bus is the state machine of a Service Bus-compatible broker: queues, topics with
// subscriptions, sessions, locks, dead letters. It does not depend on the wire protocol. A
// message has its encoded sections, unchanged, and the few properties that the bus uses.
//
//	Send ─▶ topic ─▶ rules ─┐
//	Send ─────────────────▶ queue ─▶ lane ─▶ Receiver ─▶ Settle ─▶ gone
//	           scheduled ────┘  ▲      │ lock expired, abandoned:      deferred
//	                            └──────┘ count + 1                     dead letter
//
// # What it promises
//
//   - Order: a queue, or a session of one, delivers the unlocked message with the lowest
//     sequence number. A message that is returned keeps its position.
//   - A message is locked by one receiver at a time, and a session is held by one.
//   - A batch is stored atomically. The same holds for all changes of one operation, such as
//     the copies in all subscriptions, or the move to the dead letters.
//   - An operation is answered, and a message delivered, only after the data on which it
//     depends is committed. After kill -9 all confirmed writes are there, and settled messages
//     do not return.
//   - Memory grows with locked messages, receivers and entities, but not with waiting messages.
//
// # How
//
// The store holds every message once and, as keys, every order in which messages are needed;
// the tables are in keys.go. Memory holds locks, receivers and the position of each lane,
// guarded by one mutex. An operation changes memory and the journal, which combines the store
// with uncommitted writes. One goroutine commits the collected writes with one sync; then the
// call queue sends the answers. All timed actions are in one heap of deadlines, with a timer
// for the first.
//
// # What a failure leaves behind
//
// A restart releases all locks and held sessions; delivery counts stay. When a commit fails,
// memory is ahead of the store by an unknown amount. Every operation then fails with
// disk.ErrBroken, and so do receivers. Opening the store again finds a consistent state.
//
// # What it leaves to others
//
// Authorization, encodings, credit on the wire, and creating entities on first use. Messages
// that are already in an entity stay when forwarding is enabled. Idle entities are not deleted.
// Transactions are not supported.
package bus
