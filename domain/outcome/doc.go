// Package outcome lets a sender wait until its messages are delivered. The response lists the outcome
// of each message for each sync subscription. A delivery to a sync subscription is attempted only
// once; if the attempt fails, the delivery becomes a dead letter.
//
//	list    the head of a topic lists the cursors of sync subscriptions. An append returns them
//	        without an extra read, because it replaces the head anyway
//	filter  the outcome of a message that does not match the filter of a subscription is known
//	        immediately
//	wait    wait up to [MaxWait] until each cursor has settled the matching messages. A cursor is read
//	        after each settlement of this node, and every 250 ms, because another node may serve
//	        it. All senders that wait for a cursor share the reads
//
// Outcomes are read from the store, so any node can serve the cursor. If a wait ends early, the
// deliveries continue, and outcomes that are not known yet are [Pending].
//
// A subscription is changed in one step, and its cursor is added to or removed from the list in a
// second one. After a crash between these steps, a cursor may be listed although its subscription is
// not sync. The next sender reads the subscription before it waits, and removes the cursor.
package outcome
