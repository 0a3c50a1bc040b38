// Package replay has the use cases of making deliveries again that have ended: one of them, or
// those of a range of time.
//
// A replay copies no message. A dead letter becomes a retry again; a range is a second position
// of the cursor. Both are part of the conditional write of the node that owns the cursor, and the
// node that a request reaches may be another one. So a request travels as follows:
//
//	request  added to the entry of the cursor in its shard, by a conditional write. From then on
//	         it is accepted
//	signal   notifies the owner immediately. If the signal is lost, the owner finds the request within
//	         30 seconds: it reads the entries of its shards then in any case, as it does when it
//	         takes a shard
//	follow   the owner does what the request asks for and stores the number of the request in the
//	         cursor, by the same conditional write. So each request is followed once
//
// Requests are not kept in the definition of a subscription, by which a pause travels: owners do
// not read definitions regularly, and each request would make a change by the owner of the
// subscription fail. A node that wrote to the cursor itself would take it from its owner.
package replay
