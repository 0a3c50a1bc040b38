// Package inspect shows the deliveries of a subscription to its owner and to operators:
//
//	List      the deliveries of a subscription, page by page
//	Get       one delivery, with its attempts
//	Explain   the reason for the state of a delivery, its next attempt, and what the owner can do
//	Test      a call to the receiver with a message that is not stored
//
// The package reads stored data and changes nothing. The data may be outdated: the node that
// serves a cursor stores the result of a call up to some seconds later, and a read may be
// stale.
//
// The queries are meant for people: each reads one cursor and returns one page. No delivery waits
// for a query.
package inspect
