// Package receiverlist has the use case of operators who look for receivers that are not
// called: subscriptions, watches and consumers of the broker, of all owners.
//
//	List    a page of the receivers of one kind, not ordered by time
//
// It reads the entries of the shards and, for each receiver, its cursor, its definition and the
// end of its stream. A page looks at a limited number of receivers. The data may be outdated.
// The package changes nothing, and no delivery waits for it.
//
// A watch has an entry in a shard only if a change of its resource was outstanding. Other
// watches can be listed by their owner.
//
// A failure leaves nothing behind. If a receiver cannot be read, its line says so, and the
// others are listed.
package receiverlist
