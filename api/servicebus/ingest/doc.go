// Package ingest brings the events that domains announce over Service Bus to the hub.
// It is public below api/servicebus because a node makes an [Ingestion] and runs it.
//
// Domains send DataAvailable events to two queues:
//
//	dataavailable-fifo   sessions; the session is the recipient, and keeps its order
//	dataavailable        no sessions; one receiver takes the messages as they come
//
// A session is served by one lane at a time. A lane receives, saves and completes
// at the same time, each step for later messages than the next one:
//
//	bus ──receive, one by one──▶ in hand ──save together──▶ hub ──▶ complete
//
// While a save is under way the lane goes on receiving, and what has come meanwhile
// is the next save. So a slow store makes larger saves, and a fast one short waits.
//
// What it promises:
//
//   - A message is completed only when the store has its events. Whatever fails
//     before that, the bus delivers it again, and the store, which knows the ids,
//     skips what it has.
//   - The events of a session are stored in the order in which they were sent.
//   - A message that can never be stored becomes a dead letter, alone, with the
//     reason; those around it are stored. That leaves a gap, which is logged and
//     counted. Of two contents with one id, the first to come is stored.
//   - When the store is in trouble, the messages stay in hand and locked until it is
//     well again. Delivery counts are not used up by waiting.
//   - A damaged mailbox is no trouble for others. Its session waits for the repair, in
//     order, and is tried again after pauses that grow; meanwhile it has neither a place
//     nor messages in hand. On the queue without sessions its messages become dead
//     letters, alone, which can be sent again after the repair.
//   - What is in hand is bounded, in number and bytes; the rest stays in the bus.
//   - When Run is told to stop, it finishes what is in hand, within its grace.
//
// What it leaves to others: package hub decides what a sound event is, the store
// decides what is new, and the bus remembers what nobody has completed.
//
// What a failure leaves behind: a process that dies leaves messages that are locked
// until their lock expires, and possibly stored. They are delivered again, to any
// node. A bus that is away is tried again for as long as Run runs; the metric
// messagehub_servicebus_connected and the log say so.
//
// Faults of the client, azservicebus v1.11, shape the code:
//
//   - Asked for more than one message at a time, it may hand out those of a session in
//     the wrong order. So a lane asks for one.
//   - A property of an unexpected type makes it panic. So receiving is guarded, and the
//     session set aside until its lock ends: that counts as a delivery, of which the
//     bus allows only so many before it makes the message a dead letter.
//   - A message with a decimal or a char makes it end its link, for ever anew. So what a
//     queue has is not read to find out whether it can be received from; and a session
//     whose link ends three times in a row before a message comes waits as one with a
//     damaged mailbox does, until somebody has taken the message out.
//   - Calls at the same time on a link that is lost each open it anew, and it forgets
//     all but one. So a lane settles and renews one at a time.
//   - A client that is told never to retry spins while it cannot renew its tokens. So
//     clients have the retries that package servicebus names.
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
