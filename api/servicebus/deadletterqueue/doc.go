// Package deadletterqueue reaches the dead letters of queues, through the client of Service Bus
// and without the right to manage a namespace. Its [Bus] is the deadletters.Bus of a node.
//
// A list is peeked. To send a dead letter again or to delete it, the Bus has to lock it, and
// Service Bus locks what a receiver is given: the first dead letter that is free. So there are
// two ways:
//
//   - The embedded bus lets a receiver fetch any dead letter by its sequence number.
//   - Azure lets it fetch deferred ones alone. There the Bus receives dead letters until it
//     has those that are wanted, and abandons the others afterwards. It passes over up to 1,000
//     dead letters and 64 MB of them: what is behind those cannot be reached before they are
//     sent again or deleted. Each pass raises their delivery counts by one, which has no other
//     effect: a queue has no limit of deliveries for dead letters. If the node dies meanwhile,
//     they are free when their locks end, after a minute.
//
// # Sending again
//
// A copy of the message is sent to the queue, and when the bus has accepted it, the dead letter
// is removed. The copy has the session, the body, the content type and what else the sender has
// set, without its time to live and without the properties of a dead letter. It has the
// properties of package contract that say which operator has sent it again and what it was.
//
// Its message id is made of the sequence number and the former message id. A queue that detects
// duplicates would drop a copy with the former id without a word, and the message would be lost
// with the dead letter. With this one such a queue drops just a second copy of the same dead
// letter.
//
// # What a failure leaves behind
//
// A crash between the two steps, or a bus that does not answer in the second, leaves the copy
// in the queue and the message among the dead letters. Nothing is lost. If the dead letter is
// sent again, there are two copies: ingestion removes the events of the second one by their ids,
// package objectevents by the former message id, and a domain that gets a notice twice by the
// id of its bundle.
//
// Two operators can order the same at the same time. A dead letter is locked by one of them. The
// other order fails with Busy, or finds that it is gone. Orders about one queue wait for each
// other within a process.
package deadletterqueue
