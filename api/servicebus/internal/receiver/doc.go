// Package receiver has a loop that receives the messages of a session or a queue of
// Service Bus, passes them to a [Handler], and settles them. The Handler decodes
// messages and stores batches. The package that runs the loops selects the sessions.
//
// A loop receives, stores and settles concurrently: while a batch is stored, later
// messages are received, and earlier ones are settled.
//
//	bus ──receive, one by one──▶ held ──Store together──▶ handler ──Settle──▶ bus
//
// While a Store runs, the loop keeps receiving, and the messages of that time are the next
// batch. So a slow store gets larger batches, and messages for a fast store wait only briefly.
//
// What it promises:
//
//   - Store gets the messages in the order in which the bus delivered them, and is called
//     once at a time.
//   - A message is completed or made a dead letter only after the handler has called
//     Settle. The bus delivers all others again.
//   - A message that Decode rejects becomes a dead letter; others are not affected.
//   - Locks are renewed as long as their messages are held. When one is lost, the
//     handler can ask IsLost.
//   - The held messages are bounded, in number and bytes, for one loop and for all.
//
// At the first failure of the bus a loop stops receiving, finishes the messages that it holds,
// and ends. Its receiver must not be received from again: the client would continue, but with
// messages in an unknown order.
package receiver
