// Package replay has the use cases of replays: to make one ended delivery again, or all in a
// range of time.
//
// A replay copies no message. A dead letter becomes a retry again; a range is a second position
// of the cursor. Both are part of conditional writes of the node that owns the cursor. A
// request may reach another node, so it is passed on as follows:
//
//	request  a conditional write adds the request to the entry of the cursor in its shard. Then it
//	         is accepted
//	signal   a signal notifies the owner immediately. If the signal is lost, the owner finds the
//	         request within 30 seconds, when it reads the entries of its shards. It also reads
//	         them when it takes a shard
//	follow   the owner carries out the request, and stores the number of the request in the cursor
//	         by the same conditional write. So each request is followed once
//
// Requests are not stored in the definition of a subscription, although pauses are: owners of
// cursors do not read definitions regularly, and each request would make a concurrent change by
// the owner of the subscription fail. If the node that receives the request wrote to the cursor
// itself, it would fence the owner of the cursor.
package replay
