// Package ingest brings the events that domains announce over Service Bus to the hub.
// It is public below api/servicebus because a node makes an [Ingestion] and runs it.
//
// Domains send DataAvailable events to two queues:
//
//	dataavailable-fifo   sessions; the session is the recipient, and keeps its order
//	dataavailable        no sessions; one receiver takes the messages as they come
//
// Each session, and the queue without sessions, is served by one loop of package
// internal/receiver at a time, which receives, stores and settles. This package says how
// a message is decoded and how a batch is stored, which sessions are served (session.go),
// and whether events were stored in order (order.go).
//
// What it promises:
//
//   - A message is completed only when the store has its events. If anything fails before that,
//     the bus delivers it again, and the store skips the events that it has, by their ids.
//   - The events of a session are stored in the order in which they were sent.
//   - A message that can never be stored becomes a dead letter, alone, with the
//     reason; those around it are stored. That leaves a gap, which is logged and
//     counted. Of two contents with one id, the first to come is stored.
//   - While the store fails, the messages stay held and locked until it recovers.
//     Waiting does not use up delivery counts.
//   - A damaged mailbox does not affect others. Its session waits for the repair, in order, and
//     is tried again after pauses that grow; meanwhile it has neither a slot nor held messages.
//     On the queue without sessions only its messages are dead-lettered; they can be sent again
//     after the repair.
//   - The held messages are bounded, in number and bytes; the others stay in the bus.
//   - When its context ends, Run finishes the held messages within its grace.
//
// What it leaves to others: package hub decides what a sound event is, the store
// decides what is new, and the bus keeps the messages that no receiver has completed.
//
// What a failure leaves behind: a process that dies leaves messages that are locked
// until their lock expires, and possibly stored. They are delivered again, to any
// node. A bus that is away is tried again for as long as Run runs; the metric
// messagehub_servicebus_connected and the log say so.
//
// Faults of the client, azservicebus v1.11, shape the code:
//
//   - A property of an unexpected type makes it panic. So receiving is guarded, and the session
//     is parked until its lock ends: that counts as a delivery, and the bus makes the message a
//     dead letter after its maximum number of deliveries.
//   - A message with a decimal or a char makes it end its link, each time. So what a
//     queue has is not read to find out whether it can be received from; and a session
//     whose link ends three times in a row before a message comes waits as one with a
//     damaged mailbox does, until an operator has removed the message.
//
// # What a message says
//
// A decoder reads an announcement in any form that package contract names
// (decode.go; decode_contract.go has the original's, package eventjson those in
// JSON). It takes a message whole or rejects it whole: a rejection is a reason and a
// description that go with the message to the dead letters, where an operator sees
// what is wrong and where, and no payload. The reasons stand in rejection.go. Trouble
// that may pass is never a rejection.
package ingest
