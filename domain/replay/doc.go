// Package replay repeats deliveries that have ended: one delivery, or all deliveries in a range of
// time.
//
// A replay copies no message. A dead letter that is replayed becomes a retry again. While a range is
// replayed, the cursor has a second position. The node that owns the cursor stores the retry or the position
// in its conditional writes. A request to replay may reach another node, so it is forwarded:
//
//	request  a conditional write adds the request to the entry of the cursor in its shard. After
//	         this write, the request is accepted
//	signal   a signal notifies the owner immediately. If the signal is lost, the owner finds the
//	         request within 30 seconds, when it reads the entries of its shards. A new owner
//	         reads the entries when it acquires a shard
//	follow   the owner carries out the request, and stores the number of the request in the cursor
//	         in the same conditional write. So each request is carried out once
//
// Pauses are stored in the definition of a subscription, but requests to replay are not. The owner
// of a cursor does not read definitions regularly, and a request in the definition would make a
// concurrent change by the owner of the subscription fail. The node that receives a request does
// not write to the cursor either, because this write would fence the owner of the cursor.
package replay
