// Package outcome has the use case of senders that wait: the answer to a message lists its
// outcome for each sync subscription. A delivery of such a subscription has one attempt; if
// that fails, the delivery is a dead letter.
//
//	list    the head of a topic lists the cursors that are sync, so an append has them: it replaces
//	        the head anyway. A topic that lists none costs nothing
//	filter  the messages that the filter of a subscription does not let pass are known at once
//	wait    until each cursor has settled the others, up to [MaxWait]. The cursor is read: after each
//	        settlement of this node, and every 250 ms, because another node may serve it. All senders
//	        that wait for a cursor share the reads
//
// Outcomes are read from the store, whichever node serves the cursor. A wait that ends early
// has no effect on the deliveries. They continue, and outcomes that are not known are
// [Pending].
//
// After a crash between two steps of an owner, a cursor may be listed although its subscription
// is not sync. The first sender that would wait for it reads the subscription, and removes the
// cursor from the list.
package outcome
