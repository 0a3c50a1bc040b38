// Package receiverlist lists the receivers of all owners, so that operators find receivers that
// are not called. A receiver belongs to a subscription, a watch or a consumer of the broker.
//
//	List    a page of the receivers of one kind, not ordered by time
//
// A list reads the entries of the shards and, for each receiver, its cursor, its definition and the
// end of its stream. The number of receivers that are read for a page is limited. The data may be
// outdated. The package changes nothing, and no delivery waits for a list.
//
// A watch has an entry in a shard only if a change of its resource was outstanding. Only the owner
// can list other watches.
//
// A failure leaves nothing behind. If a receiver cannot be read, the list has it with the error in
// Receiver.Fault.
package receiverlist
