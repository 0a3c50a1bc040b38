// Package outcome lets a sender wait for the deliveries of its messages: the response lists the
// outcome of each message for each sync subscription. A delivery to a sync subscription has one
// attempt; if the attempt fails, the delivery is a dead letter.
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
// Changing a subscription and listing its cursor are two steps. After a crash between the steps, a
// cursor may be listed although its subscription is not sync. The next sender reads the
// subscription before it waits, and removes the cursor from the list.
package outcome
