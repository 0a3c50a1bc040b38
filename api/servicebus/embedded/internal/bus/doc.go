// Package bus is the state machine of a Service Bus-compatible broker: queues, topics with
// subscriptions, sessions, locks, dead letters. It does not depend on the wire protocol. A message
// consists of its encoded sections, unchanged, and the few properties that the bus uses.
//
//	Send ─▶ topic ─▶ rules ─┐
//	Send ─────────────────▶ queue ─▶ lane ─▶ Receiver ─▶ Settle ─▶ gone
//	           scheduled ────┘  ▲      │ lock expired, abandoned:      deferred
//	                            └──────┘ count + 1                     dead letter
//
// # What it promises
//
//   - Order: a queue, or a session of a queue, delivers the unlocked message with the lowest
//     sequence number. A message that is returned keeps its position.
//   - Only one receiver at a time can lock a message or hold a session.
//   - A batch is stored atomically. The same holds for all changes of one operation, such as
//     the copies in all subscriptions, or the move to the dead letters.
//   - An operation is answered, and a message delivered, only after the data on which it
//     depends is committed. After kill -9, all confirmed writes are stored, and settled messages
//     are not delivered again.
//   - Memory grows with locked messages, receivers and entities, but not with waiting messages.
//
// # How
//
// The store has every message once. For each order in which the bus reads messages, the store also
// has a table of keys; keys.go lists the tables. Locks, receivers and the position of each lane are
// in memory, guarded by one mutex. An operation changes memory and the journal, which combines the
// store with uncommitted writes. One goroutine commits the collected writes with one sync. After
// the commit, the call queue calls the callbacks. All timed actions are in one heap of deadlines,
// with a timer for the first deadline.
//
// # What a failure leaves behind
//
// A restart releases all locks and held sessions, but not delivery counts. After a failed commit,
// memory may contain changes that are not stored. Therefore every later operation fails with
// disk.ErrBroken, and receivers end with this error. The store is consistent when it is opened
// again.
//
// # What it does not do
//
// Other packages implement authorization, encodings, credit on the wire, and the creation of
// entities on first use. When forwarding is enabled, messages that are already in the entity are
// not forwarded. Idle entities are not deleted. Transactions are not supported.
package bus
