// Package receiver runs the loop that receives the messages of a session or a queue of
// Service Bus, has them stored, and settles them. It knows no message: how to decode one
// and how to store a batch says a [Handler]. Which sessions are served, and what their
// order is worth, stays with the package that runs the loops.
//
// A loop receives, stores and settles at the same time, each step for later messages
// than the next one:
//
//	bus ──receive, one by one──▶ in hand ──Store together──▶ handler ──Settle──▶ bus
//
// While a Store runs, the loop keeps receiving, and the messages of that time are the next
// batch. So a slow store gets larger batches, and messages for a fast store wait only briefly.
//
// What it promises:
//
//   - Store gets the messages in the order in which the bus delivered them, and is called
//     once at a time.
//   - A message is completed or made a dead letter only after the handler has called
//     Settle. Any other message the bus delivers again.
//   - A message that Decode rejects becomes a dead letter, alone.
//   - Locks are renewed as long as their messages are held. When one is lost, the
//     handler can ask IsLost.
//   - The held messages are bounded, in number and bytes, for one loop and for all.
//
// At the first failure of the bus a loop stops receiving, finishes the messages that it holds,
// and ends. Its receiver must not be received from again: the client would continue, but with
// messages in an unknown order.
package receiver
