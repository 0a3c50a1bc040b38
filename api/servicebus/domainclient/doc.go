// Package domainclient is a client of the hub for domains that are written in Go and
// use Service Bus. It imports Microsoft's clients for Service Bus and Blob Storage,
// package contract and the layer over the client for Service Bus, but not the hub.
//
//	domain, err := domainclient.New(domainclient.Options{
//		Origin:   "Charges",
//		Connect:  domainclient.ConnectionString(bus),
//		Exchange: container, // shared with the hub
//	})
//
// A domain does three things, and [Client] has a method for each:
//
//	Send     informs the hub that data waits for an actor
//	Serve    makes the content of a bundle when the hub asks for it
//	Notices  is informed that an actor has confirmed a bundle
//
// Serve and Notices run until their context ends. Both may run concurrently, in any number of
// processes. They wait for every goroutine that they start.
//
// # What it promises
//
//   - Events of one recipient reach the hub in the order in which Send gets them.
//     A repeated message has the same id, and the hub stores each event once.
//   - A request is answered, if only with a [Failure], before it is completed. A
//     process that dies in between leaves it to the next one.
//   - Content is streamed into the exchange and never held in memory. The hub never
//     sees an incomplete content.
//   - A notice is completed when the handler returns nil, and comes again otherwise.
//   - A message that cannot be decoded becomes a dead letter with a reason; others
//     are not affected. If a message makes Microsoft's client panic, its receiver is
//     replaced, and the process continues.
//   - After a temporary failure (a lost connection, a busy server), the client tries
//     again, with growing pauses. A permanent one, such as a queue that does not
//     exist, is returned.
//
// # Repetitions
//
// A request may come twice, because the actor repeats its Peek; and so may a notice,
// because Service Bus delivers at least once. Content may be made again: the name of
// its blob depends only on the bundle. A notice has the same ID each time; a domain
// that must not count it twice stores the ID together with the effects of the notice.
// The hub deletes the content in the exchange.
//
// # Failures
//
// Send may fail after it has sent some events: as many as it returns, and possibly one more
// batch for each recipient. It is safe to send all of them again. Serve and Notices leave
// unfinished messages on their queue.
package domainclient
