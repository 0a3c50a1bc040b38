// Package domainclient is the hub as a domain sees it over Service Bus: a team
// whose domain is written in Go imports it, and gets no hub along with it. It needs
// Microsoft's clients for Service Bus and for Blob Storage, and of ours the contract
// (package contract) and the layer over the client for Service Bus.
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
//	Notices  learns that an actor holds a bundle safely
//
// Serve and Notices run until their context ends. Both may run concurrently, in any number of
// processes. They wait for every goroutine that they start.
//
// # What it promises
//
//   - Events of one recipient reach the hub in the order in which Send gets them.
//     What is sent again has the same message ids, and the hub takes each event once.
//   - A request is answered, if only with a [Failure], before it is completed. A
//     process that dies in between leaves it to the next one.
//   - Content is streamed into the exchange and never held in memory; half of it is
//     never seen.
//   - A notice is completed when the handler says so, and comes again otherwise.
//   - What is unreadable becomes a dead letter with a reason, alone. A message that
//     makes Microsoft's client panic costs one receiver, not the process.
//   - Trouble that may pass (a lost connection, a busy server) is waited out with
//     growing pauses. What will not pass by itself, such as a queue that does not
//     exist, is returned.
//
// # What it leaves to others
//
// A request may come twice, and so may a notice: the hub asks again when its actor
// does, and Service Bus delivers at least once. Content is written under a name
// that depends on the bundle alone, so that making it again does no harm. A notice
// has the same ID each time; a domain that must not count it twice keeps the IDs
// that it has seen, together with what it does about them. What is written into the
// exchange is removed by the hub.
//
// # What a failure leaves behind
//
// Send may fail after it has sent some events: those that it counts, and possibly one more
// batch for each recipient. It is safe to send all of them again. Serve and Notices leave
// unfinished messages on their queue.
package domainclient
