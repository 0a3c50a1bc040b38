// Package inspect has the use cases of people who look up the deliveries of a subscription:
//
//	List      the deliveries of a subscription, page by page
//	Get       one delivery, with its attempts
//	Explain   the reason for the state of a delivery, what happens next, and what its owner can do
//	Test      a call to the receiver with a message that is not stored
//
// The package reads stored data and changes nothing. The data may be outdated: the node that
// serves a cursor stores the result of a call up to some seconds later, and a read may be
// stale.
//
// The queries are meant for people: one cursor and one page at a time. No delivery waits for
// them.
package inspect
