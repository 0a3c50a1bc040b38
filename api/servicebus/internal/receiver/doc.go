// Package receiver provides a [Loop], which receives the messages of a session or a queue of
// Service Bus, passes them to a [Handler], and settles them. The Handler decodes
// messages and stores batches. The package that runs the loops selects the sessions.
//
// A loop receives, stores and settles concurrently: while a batch is stored, later
// messages are received, and earlier ones are settled.
//
//	bus ──receive, one by one──▶ held ──Store together──▶ handler ──Settle──▶ bus
//
// While Store runs, the loop continues to receive, and the messages that arrive form the next
// batch. So a slow store gets larger batches, and messages for a fast store wait only briefly.
//
// What it promises:
//
//   - Store gets the messages in the order in which the bus delivered them, and is not called
//     concurrently.
//   - A message is completed or dead-lettered only after the handler has called Settle. The bus
//     delivers all other messages again.
//   - A message that Decode rejects becomes a dead letter; other messages are not affected.
//   - The locks of held messages are renewed. IsLost reports whether the lock of a message is
//     lost.
//   - The number and the bytes of the held messages are limited, for each loop and for all loops.
//
// At the first failure of the bus, a loop stops receiving, finishes the messages that it holds,
// and ends. Its receiver must not be used again, because the client would deliver messages in an
// unknown order.
package receiver
