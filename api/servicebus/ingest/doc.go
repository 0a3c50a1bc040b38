// Package ingest stores the events that domains announce over Service Bus. A node makes
// an [Ingestion] and runs it.
//
// Domains send DataAvailable events to two queues:
//
//	dataavailable-fifo   with sessions; the session is the recipient, whose events keep their order
//	dataavailable        no sessions; one receiver receives the messages, in no particular order
//
// Each session, and the queue without sessions, is served by one loop of package
// internal/receiver at a time, which receives, stores and settles. This package
// decodes messages and stores batches, selects the sessions to serve (session.go), and
// checks that events are stored in order (order.go).
//
// What it promises:
//
//   - A message is completed only when the store has its events. If anything fails before that,
//     the bus delivers it again, and the store skips the events that it has, by their ids.
//   - The events of a session are stored in the order in which they were sent.
//   - Only a message that can never be stored becomes a dead letter, with the
//     reason; those around it are stored. That leaves a gap, which is logged and
//     counted. Of two contents with one id, the first to come is stored.
//   - While the store fails, the messages stay held and locked until it recovers.
//     Waiting does not use up delivery counts.
//   - A damaged mailbox does not affect others. Its session waits for the repair, in order, and
//     is tried again after pauses that grow; meanwhile it has neither a slot nor held messages.
//     On the queue without sessions, only messages for it become dead letters; an operator can
//     send them again after the repair.
//   - The held messages are bounded, in number and bytes; the others stay in the bus.
//   - When its context ends, Run finishes the held messages within its grace.
//
// Other packages decide whether an event is valid (package hub) and new (the store). The bus
// keeps the messages that no receiver has completed.
//
// When a process dies, its messages stay locked until their lock expires, even if
// their events are stored. Then they are delivered again, to any node. While the bus
// cannot be reached, Run tries again; the metric messagehub_servicebus_connected and
// the log report that.
//
// The code works around these faults of the client, azservicebus v1.11:
//
//   - A property of an unexpected type makes it panic. So panics are recovered, and the session
//     is parked until its lock ends. That counts as a delivery, and after the maximum number of
//     deliveries the bus makes the message a dead letter.
//   - A message with a decimal or a char makes it end its link, each time. So the
//     connection to a queue is checked without reading its messages. A session whose
//     link ends three times in a row before a message comes waits like one with a
//     damaged mailbox, until an operator has removed the message.
//
// # Decoding
//
// A decoder reads an announcement in any form that package contract names
// (decode.go; decode_contract.go has the original's, package eventjson those in
// JSON). It accepts or rejects a message as a whole. A rejected message becomes a dead
// letter with a reason and a description, from which an operator sees what is wrong
// and where; they contain no payload. rejection.go has the reasons. A temporary
// failure is never a rejection.
package ingest
