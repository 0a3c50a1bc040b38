// Package domainclient is a client of the hub for domains that are written in Go and
// use Service Bus. It imports Microsoft's clients for Service Bus and Blob Storage,
// package contract and the layer over the client for Service Bus, but not the hub.
//
//	account, err := azblob.NewClientFromConnectionString(blobConnection, nil)
//	...
//	domain, err := domainclient.New(domainclient.Options{
//		Origin:   "Charges",
//		Connect:  domainclient.ConnectionString(busConnection),
//		Exchange: account.ServiceClient().NewContainerClient(contract.ExchangeContainer), // shared with the hub
//	})
//
// A domain does three things, and [Client] has a method for each:
//
//	Send     announces to the hub that data waits for an actor
//	Serve    produces the content of a bundle when the hub requests it
//	Notices  receives a notice when an actor has confirmed a bundle
//
// Serve and Notices run until their context ends. Both may run concurrently, in any number of
// processes. They wait for every goroutine that they start.
//
// # What it promises
//
//   - Events of one recipient reach the hub in the order in which they were passed to
//     Send. A repeated message has the same id, and the hub stores each event once.
//   - The reply to a request, which may be a [Failure], is sent before the request is
//     completed. If the process dies before the reply, another process receives the
//     request.
//   - Content is streamed to the exchange in blocks, so its size is not limited by the
//     memory. The hub never reads incomplete content.
//   - A notice is completed when the handler returns nil. Otherwise it is delivered
//     again.
//   - A message that cannot be decoded becomes a dead letter with a reason; other
//     messages are not affected. If a message makes Microsoft's client panic, its
//     receiver is replaced, and the process continues.
//   - After a temporary failure, such as a lost connection or a busy server, the client
//     retries with growing pauses. A permanent failure, such as a missing queue, is
//     returned.
//
// # Repetitions
//
// A request for the same bundle may arrive twice, because the actor repeats its Peek. A
// notice may arrive twice, because Service Bus delivers at least once. Content may be
// produced again: the name of its blob depends only on the bundle. A notice has the same
// ID each time, so a domain that must process a notice only once stores the ID together
// with the effects of the notice. The hub deletes the content in the exchange.
//
// # Failures
//
// Send may fail after it has sent some events: as many as it returns, and possibly one more
// batch for each recipient. The caller may send all events again. Serve and Notices leave
// unfinished messages in their queues.
package domainclient
