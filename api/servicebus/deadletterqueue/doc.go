// Package deadletterqueue lists, resends and deletes the dead letters of queues, with the client of
// Service Bus and without the right to manage a namespace. Its [Bus] is the deadletters.Bus of a node.
//
// A list only peeks. To send a dead letter again or to delete it, the Bus must lock it, but
// Service Bus gives a receiver the first dead letter that is not locked. So there are two ways:
//
//   - The embedded bus lets a receiver fetch any dead letter by its sequence number.
//   - Azure allows that only for deferred ones. There the Bus receives dead letters until it
//     has those that are wanted, and abandons the others afterwards. It passes over up to 1,000
//     dead letters with up to 64 MB. Those behind them can be reached only after some of the
//     first ones were resent or deleted. Each pass raises their delivery counts by one, which has
//     no other effect: a queue has no limit of deliveries for dead letters. If the node dies meanwhile,
//     they are free when their locks end, after a minute.
//
// # Sending again
//
// A copy of the message is sent to the queue, and when the bus has accepted it, the dead letter
// is removed. The copy has the session, the body, the content type and everything else that the sender has
// set, without its time to live and without the properties of a dead letter. It has the
// properties of package contract that name the operator and the former message id.
//
// Its message id is made of the sequence number and the former message id. A queue that detects
// duplicates would silently drop a copy with the former id, and the message would be lost. With the new id,
// such a queue drops only a second copy of the same dead letter.
//
// # Failures
//
// A crash between the two steps, or a bus that does not answer in the second, leaves the copy
// in the queue and the message among the dead letters. Nothing is lost. If the dead letter is
// sent again, there are two copies. Their receivers recognize the second one: ingestion by the
// ids of its events, package objectevents by the former message id, and a domain by the id of
// the bundle in the notice.
//
// If two operators give the same order at the same time, one of them locks the dead letter. The
// other order fails with Busy, or reports that the dead letter is gone. Within a process, orders
// about one queue are executed one after another.
package deadletterqueue
