// Package outcome has the use case of senders that wait: the answer to a message lists what became
// of it for each subscription whose deliveries are sync. Such a delivery has one attempt; if that
// fails, it is a dead letter.
//
//	list    the head of a topic lists the cursors that are sync, so an append has them: it replaces
//	        the head anyway. A topic that lists none costs nothing
//	filter  the messages that the filter of a subscription does not let pass are known at once
//	wait    until each cursor has settled the others, up to [MaxWait]. The cursor is read: after each
//	        settlement of this node, and every 250 ms, because another node may serve it. All senders
//	        that wait for a cursor share the reads
//
// What is stored decides, whichever node serves the cursor. A wait that ends early changes
// nothing: the deliveries continue, and the outcomes that are not known are [Pending].
//
// A cursor may be listed by mistake, after a crash between two steps of its owner: the first sender
// that would wait for it reads its subscription, and removes it from the list.
package outcome
