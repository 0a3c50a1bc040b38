// Package receiverlist has the use case of operators who want to know which receivers of the hub stand still:
// subscriptions, watches and consumers of the broker of all owners.
//
//	List    a page of the receivers of one kind, in no order of time
//
// It reads the entries of the shards, and of each receiver that it looks at its cursor, its definition and
// the end of its stream. A page looks at a limited number of receivers. Everything is read as it is stored:
// nothing proves it, nothing is changed, and no delivery waits for it.
//
// A watch has an entry once a change of its resource was outstanding; the others are found by their owner.
//
// A failure leaves nothing behind. What cannot be read of one receiver is said in its line, and the others
// are listed.
package receiverlist
