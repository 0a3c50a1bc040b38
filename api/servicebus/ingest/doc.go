// Package ingest stores the events that domains announce over Service Bus. A node makes
// an [Ingestion] and runs it.
//
// Domains send DataAvailable events to two queues:
//
//	dataavailable-fifo   with a session for each recipient, whose events keep their order
//	dataavailable        without sessions; one receiver receives the messages, in no particular order
//
// One loop of package internal/receiver at a time serves each session, and one loop serves
// the queue without sessions. A loop receives and settles messages. This package decodes
// the messages and stores batches, selects the sessions to serve (session.go), and checks
// that events are stored in order (order.go).
//
// What it promises:
//
//   - A message is completed only when its events are stored. After a failure before that, the
//     bus delivers the message again, and the store skips the events that it already has.
//   - The events of a session are stored in the order in which they were sent.
//   - Only a message that can never be stored becomes a dead letter, with a reason. The
//     messages before and after it are stored, and the gap is logged and counted. Of two
//     contents with one id, the content that arrives first is stored.
//   - While the store fails, the messages stay held and locked until the store recovers.
//     Waiting does not count as a delivery.
//   - A damaged mailbox does not affect other mailboxes. Its session waits for the repair, and
//     its messages keep their order. The session is tried again after growing pauses, during
//     which it has neither a slot nor held messages. In the queue without sessions, the
//     messages for the damaged mailbox become dead letters; an operator can send them again
//     after the repair.
//   - The number and the bytes of the held messages are limited; other messages stay in the bus.
//   - When its context ends, Run finishes the held messages within the grace period.
//
// Package hub decides whether an event is valid, and the store decides whether it is new. The
// bus keeps the messages that no receiver has completed.
//
// When a process dies, its messages stay locked until their locks expire, even if their
// events are stored. The bus then delivers the messages again, to any node. While the bus
// cannot be reached, Run retries, and the log and the metric
// messagehub_servicebus_connected report the failure.
//
// The code works around these faults of the client, azservicebus v1.11:
//
//   - The client panics on a property of an unexpected type. So panics are recovered, and the
//     session is parked until its lock expires. The expiry counts as a delivery, and after the
//     maximum number of deliveries the bus dead-letters the message.
//   - The client ends its link whenever it receives a message with a decimal or a char. So the
//     connection to a queue is checked without reading its messages. If the link of a session
//     ends three times in a row before a message arrives, the session waits like a session with
//     a damaged mailbox, until an operator has removed the message.
//
// # Decoding
//
// A decoder decodes an announcement in any format that package contract names (decode.go).
// decode_contract.go decodes the format of the original, and package eventjson decodes JSON.
// The decoder accepts or rejects a message as a whole. A rejected message becomes a dead
// letter. Its reason and description, which contain no payload, tell an operator what is wrong
// and where. rejection.go lists the reasons. A temporary failure is never a rejection.
package ingest
