// Package bus is the state machine of a Service Bus-compatible broker: queues,
// topics with topic subscriptions, sessions, locks, dead letters. It knows no
// wire. A message is its encoded sections, kept as they came, beside the few
// properties that decide where it goes.
//
//	Send ─▶ topic ─▶ rules ─┐
//	Send ─────────────────▶ queue ─▶ lane ─▶ Receiver ─▶ Settle ─▶ gone
//	           scheduled ────┘  ▲      │ lock expired, abandoned:      deferred
//	                            └──────┘ count + 1                     dead letter
//
// # What it promises
//
//   - Order: a queue, or a session of one, hands out the free message with the
//     lowest sequence number. A message that comes back stands at its old place.
//   - A message is locked by one receiver at a time, and a session held by one.
//   - A batch is stored as a whole or not at all; so is whatever one operation
//     does: the copies in all subscriptions, or the way to the dead letters.
//   - Nobody is answered, a refusal included, and no message handed out, before
//     what that rests on is committed. After kill -9 all that was answered is
//     there, and nothing that was settled comes back.
//   - Memory does not grow with what waits, but with what is locked, with
//     receivers, and with entities.
//
// # How
//
// The store holds every message once and, as keys, every order it is needed in:
// the table in keys.go is the whole layout. Memory holds locks, receivers and
// how far each lane has got. One mutex guards it. An operation changes memory
// and the journal, which is the store with what is still on its way to it on
// top; one goroutine commits what has collected, all of it with one sync, and
// then the answers go out through the outbox. Everything that has a time is in
// one heap of deadlines, with one timer for the first.
//
// # What a failure leaves behind
//
// A restart forgets locks and held sessions: their messages are free, with the
// counts they had. When a commit fails, memory is ahead of what is stored and
// nobody knows by how much; every operation is then refused with an error that
// is disk.ErrBroken, receivers end with it, and opening the store again finds
// a consistent state.
//
// # What it leaves to others
//
// Who may do what, encodings, credit on the wire, and creating entities on
// first use. Messages that are already in an entity stay when it begins to
// forward. Entities are not deleted for being idle. There are no transactions.
package bus
