// Package outcome has the use case of senders that wait: the answer to a message lists its
// outcome for each sync subscription. A delivery of such a subscription has one attempt; if
// that fails, the delivery is a dead letter.
//
//	list    the head of a topic lists the cursors of sync subscriptions. An append returns them
//	        without an extra read, because it replaces the head anyway
//	filter  messages that do not match the filter of a subscription have their outcome immediately
//	wait    wait up to [MaxWait] until each cursor has settled the other messages. A cursor is read
//	        after each settlement of this node, and every 250 ms, because another node may serve
//	        it. All senders that wait for a cursor share the reads
//
// Outcomes are read from the store, whichever node serves the cursor. A wait that ends early
// has no effect on the deliveries. They continue, and outcomes that are not known are
// [Pending].
//
// After a crash between two steps of an owner, a cursor may be listed although its subscription
// is not sync. The first sender that would wait for it reads the subscription, and removes the
// cursor from the list.
package outcome
