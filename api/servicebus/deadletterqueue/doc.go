// Package deadletterqueue lists, resends and deletes the dead letters of queues, with the client of
// Service Bus and without the right to manage a namespace. Its [Bus] is the deadletters.Bus of a node.
//
// Listing dead letters only peeks at them. To resend or delete a dead letter, the Bus must lock
// it, but Service Bus gives a receiver the first dead letter that is not locked. So the Bus locks
// dead letters in two ways:
//
//   - On the embedded bus, a receiver fetches any dead letter by its sequence number.
//   - On Azure, a receiver fetches only deferred dead letters by number. For all others, the Bus
//     receives dead letters in order until it has the wanted ones, and then abandons the rest.
//     It passes over up to 1,000 dead letters with up to 64 MB. Dead letters behind that limit
//     can be reached only after some of the first ones were resent or deleted. Each pass raises
//     the delivery counts of the passed-over dead letters by one. That has no other effect,
//     because dead letters have no delivery limit. If the node dies during a pass, the locks
//     expire after a minute.
//
// # Sending again
//
// The Bus sends a copy of the message to the queue. When the bus has accepted the copy, the dead
// letter is deleted. The copy has the session, the body, the content type and everything else
// that the sender has set, except the time to live. It does not have the properties of a dead
// letter. It has the properties of package contract that name the operator and the former
// message id.
//
// The message id of the copy consists of the sequence number and a hash of the former message
// id. A queue with duplicate detection would silently drop a copy with the former id, and the
// message would be lost. With the new id, such a queue drops only a second copy of the same dead
// letter.
//
// # Failures
//
// If the node dies after sending the copy, or the bus does not reply to the deletion, the copy is
// in the queue and the message is still a dead letter. Nothing is lost. If the dead letter is
// sent again, the queue may get two copies. Their receivers recognize the second copy: ingestion
// by the ids of its events, package objectevents by the former message id, and a domain by the
// id of the bundle in the notice.
//
// If two operators order an action on the same dead letter at the same time, one order locks the
// dead letter. The other order fails with Busy, or reports that the dead letter does not exist.
// Within a process, the orders for one queue are executed one after another.
package deadletterqueue
